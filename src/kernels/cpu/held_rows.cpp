// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/held_rows.h"

#include <algorithm>

#include "kernels/cpu/coded_rows.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::cpu {
namespace {

/// Rotates row n to position first + n.
void rotate_rows(const RopeTable& table, std::size_t first, std::size_t count, std::size_t head_dim, float* rows) {
  const std::size_t chunks = table.cosine.extent(1);
  for (std::size_t row = 0; row < count; ++row) {
    const float *const cosine = table.cosine.data() + (first + row) * chunks, *const sine = table.sine.data() +
                                                                                            (first + row) * chunks;
    float *const low = rows + row * head_dim, *const high = low + chunks;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const float a = low[chunk], b = high[chunk];
      low[chunk] = a * cosine[chunk] - b * sine[chunk];
      high[chunk] = b * cosine[chunk] + a * sine[chunk];
    }
  }
}

}  // namespace

PastReader::PastReader(const PastKv& past, bool keys, bool may_change_basis)
    : early_(keys ? past.k : past.v),
      late_(keys ? past.late_k : past.late_v),
      slots_(keys ? past.slots : RopeTable{}),
      in_basis_(may_change_basis && early_.format.turns() && slots_.cosine.empty() &&
                (late_.empty() || late_.format == early_.format)) {}

void PastReader::change_basis(BasisChange change, float* rows, std::size_t count, float* scratch) const noexcept {
  if (in_basis_) loops().change_row_basis({early_.format, early_.values(), count, {}, nullptr, rows, scratch}, change);
}

std::size_t PastReader::spare_floats(std::size_t rows) const noexcept {
  const bool copies = !early_.format.is_plain() || !late_.empty() || !slots_.cosine.empty();
  return copies ? rows * early_.values() + std::max(scratch_floats(early_), scratch_floats(late_)) : 0;
}

void PastReader::decode(const StoredRows& rows, std::size_t member, std::size_t head, std::size_t first,
                        std::size_t count, float* to, float* scratch) const {
  loops().decode_rows(coded(rows, member, head, first, count, to, scratch, in_basis_));
}

const float* PastReader::read(std::size_t member, std::size_t head, std::size_t first, std::size_t count,
                              float* spare) const {
  const std::size_t values = early_.values(), border = early_.count;
  if (early_.format.is_plain() && slots_.cosine.empty() && first + count <= border)
    return reinterpret_cast<const float*>(early_.row(member, head, first));
  if (late_.format.is_plain() && slots_.cosine.empty() && first >= border)
    return reinterpret_cast<const float*>(late_.row(member, head, first - border));
  float* const scratch = spare + count * values;
  const std::size_t early = std::min(count, border - std::min(border, first));
  if (early > 0) decode(early_, member, head, first, early, spare, scratch);
  if (early < count)
    decode(late_, member, head, std::max(first, border) - border, count - early, spare + early * values, scratch);
  if (!slots_.cosine.empty()) rotate_rows(slots_, first, count, values, spare);
  return spare;
}

}  // namespace kvs::cpu
