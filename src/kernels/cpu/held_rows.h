#pragma once

#include <cstddef>

#include "kernels/backend.h"

namespace kvs::cpu {

/// Floats of scratch memory that reading rows of this format takes.
std::size_t read_scratch(const HeldRows& rows);

/// The keys, or the values, of a past as f32 rows, a few at a time.
class PastReader {
 public:
  PastReader(const KeyRows& past, bool keys);

  /// Floats that read() needs for up to `rows` rows: 0 where it never has to copy.
  std::size_t spare_floats(std::size_t rows) const noexcept;
  /// Rows [first, first + count) of a head: where they lie, or in `spare`.
  const float* read(std::size_t member, std::size_t head, std::size_t first, std::size_t count, float* spare) const;

 private:
  void decode(const HeldRows& rows, std::size_t member, std::size_t head, std::size_t first, std::size_t count,
              float* to, float* scratch) const;

  HeldRows early_, late_;
  RopeTable slots_;
};

}  // namespace kvs::cpu
