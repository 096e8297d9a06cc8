// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "caches/token_rows.h"

namespace kvs::inline calibrate {

/// The input of the first layer's projections for every token of a sequence, which is the token's normalised embedding.
/// It depends on the token's id alone, so an engine has it without storing it. Rows are predicted from it.
class TokenInputs {
 public:
  /// Adds the new tokens of the first layer. @throws Error kInternal unless they follow those that are there
  void add(const LayerStates& states);
  /// Returns tokens [first, first + count): [1, 1, count, d_model]. @throws Error kInternal unless they are there
  RowBuffer::Part copy(Backend& backend, std::size_t first, std::size_t count) const;
  /// This run's buffers; an engine stores nothing.
  CacheBytes bytes() const noexcept;

 private:
  RowBuffer rows_;
};

/// Returns an operand in f32: [1, 1, row, column].
RowBuffer::Part rows_of_operand(Backend& backend, const Operand& x);

}  // namespace kvs::inline calibrate
