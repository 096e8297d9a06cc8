// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/backend.h"
#include "model/model_tensors.h"

namespace kvs::inline model {

/// The rows of the token embedding [token, d_model] in the backend's compute type, in its memory or in their file.
class TokenEmbedding {
 public:
  /// Reads all rows into memory. @throws Error kData if a value is NaN or infinite
  TokenEmbedding(Backend& backend, const TensorRows& rows);

  std::size_t rows() const noexcept { return table_.rows; }
  std::size_t columns() const noexcept { return table_.columns; }
  /// Memory of the backend that the rows occupy.
  std::size_t bytes() const noexcept { return memory_.bytes(); }
  /// Releases the memory: rows are read from the file from now on.
  void leave_in_file();
  /// Writes some rows, multiplied by `scale`, to `out`.
  void gather(std::span<const std::int32_t> rows, float scale, const BackendView<float, 2>& out) const;
  /// Copies rows [first, first + count) from the backend's memory to `out` (count · columns).
  void read(std::size_t first, std::size_t count, std::span<float> out) const;

 private:
  std::byte* at(std::size_t row) const;

  Backend* backend_;
  TensorRows source_;
  BackendTensor<std::byte, 1> memory_;
  Operand table_;  // no data: the rows are in the file
};

}  // namespace kvs::inline model
