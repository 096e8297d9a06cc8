// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/attention_ops.h"

namespace kvs::cpu {

/// Reads the keys, or the values, of a past as f32 rows, a few at a time.
class PastReader {
 public:
  /// @param may_change_basis  rows may be read in the basis of their encoding, see in_basis()
  PastReader(const PastKv& past, bool keys, bool may_change_basis);

  /// Returns true if read() leaves rows in the basis of their encoding. The caller then transforms the few rows that
  /// meet them. True if all rows share one basis and are not rotated afterwards.
  bool in_basis() const noexcept { return in_basis_; }
  /// Transforms `count` rows in place if in_basis().  @param scratch  spare_floats()
  void change_basis(BasisChange change, float* rows, std::size_t count, float* scratch) const noexcept;

  /// Returns the floats that read() needs for up to `rows` rows: 0 if it never copies.
  std::size_t spare_floats(std::size_t rows) const noexcept;
  /// Returns rows [first, first + count) of a head: a pointer to the stored rows, or to a copy in `spare`.
  const float* read(std::size_t member, std::size_t head, std::size_t first, std::size_t count, float* spare) const;

 private:
  void decode(const StoredRows& rows, std::size_t member, std::size_t head, std::size_t first, std::size_t count,
              float* to, float* scratch) const;

  StoredRows early_, late_;
  RopeTable slots_;
  bool in_basis_;
};

}  // namespace kvs::cpu
