#pragma once

#include <cstddef>

#include "kernels/backend.h"

namespace kvs::cpu {

/// The keys, or the values, of a past as f32 rows, a few at a time.
class PastReader {
 public:
  /// @param may_turn  rows may be read in the basis in which they are coded, see in_basis()
  PastReader(const PastKv& past, bool keys, bool may_turn);

  /// Whether read() leaves rows in the basis in which they are coded, so that the few rows which meet them have to be
  /// turned instead: true where all of them share one and are not rotated after that.
  bool in_basis() const noexcept { return in_basis_; }
  /// Turns `count` rows in place, if in_basis().  @param scratch  spare_floats()
  void turn(RowTurn turn, float* rows, std::size_t count, float* scratch) const noexcept;

  /// Floats that read() needs for up to `rows` rows: 0 where it never has to copy.
  std::size_t spare_floats(std::size_t rows) const noexcept;
  /// Rows [first, first + count) of a head: where they lie, or in `spare`.
  const float* read(std::size_t member, std::size_t head, std::size_t first, std::size_t count, float* spare) const;

 private:
  void decode(const StoredRows& rows, std::size_t member, std::size_t head, std::size_t first, std::size_t count,
              float* to, float* scratch) const;

  StoredRows early_, late_;
  RopeTable slots_;
  bool in_basis_;
};

}  // namespace kvs::cpu
