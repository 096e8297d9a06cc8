#include "kernels/cpu/held_rows.h"

#include <algorithm>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/tiles.h"

namespace kvs::cpu {
namespace {

/// Describes rows of one head to encode or decode. const_cast is safe: bytes of rows that are only read stay unwritten.
CodedRows coded(const StoredRows& held, std::size_t member, std::size_t head, std::size_t first, std::size_t count,
                const float* x, float* scratch, bool in_basis = false) {
  return {.format = held.format,
          .values = held.values(),
          .rows = count,
          .tables = tables_of(held.format, held.scales.data(), held.values(), head),
          .bytes = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(held.row(member, head, first))),
          .x = const_cast<float*>(x),
          .scratch = scratch,
          .in_basis = in_basis};
}

std::size_t scratch_floats(const StoredRows& rows) { return unit_scratch(rows.format, rows.values()); }

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

void check(const StoredRows& held, std::size_t heads, std::size_t values, std::size_t first, std::size_t count) {
  require(held.shape[0] == 1 && held.shape[1] == heads && held.values() == values, "rows", "held rows of these heads");
  require(first + count <= held.shape[2], "rows", "room for them");
  require(!held.format.across_tokens || (first % held.format.group == 0 && count % held.format.group == 0), "rows",
          "whole units");
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

namespace kvs::inline kernels {

/// @param x  the rows of head 0; the next head's rows follow after `head_stride` floats
void CpuBackend::code_rows(const StoredRows& held, std::size_t first, std::size_t count, const float* x,
                           std::size_t head_stride, void (*code)(const cpu::CodedRows&) noexcept) {
  reserve_scratch(cpu::scratch_floats(held) * sizeof(float));
  const std::size_t heads = held.shape[1], step = rows_of_unit(held.format), units = count / step;
#pragma omp parallel for num_threads(threads_) schedule(static) if (heads * count > 256)
  for (std::size_t task = 0; task < heads * units; ++task) {
    const std::size_t head = task / units, row = task % units * step;
    code(cpu::coded(held, 0, head, first + row, step, x + head * head_stride + row * held.values(),
                    static_cast<float*>(scratch_[cpu::this_worker()].data())));
  }
}

void CpuBackend::encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                             const StoredRows& held, std::size_t at) {
  const auto [members, heads, tokens, values] = rows.shape();
  cpu::check(held, heads, values, at, count);
  cpu::require(members == 1 && first + count <= tokens, "rows", "rows of one sequence");
  code_rows(held, at, count, rows.data() + first * values, tokens * values, cpu::loops().encode_rows);
}

void CpuBackend::decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) {
  const auto [members, heads, count, values] = out.shape();
  cpu::check(held, heads, values, first, count);
  cpu::require(members == 1, "rows", "rows of one sequence");
  code_rows(held, first, count, out.data(), count * values, cpu::loops().decode_rows);
}

}  // namespace kvs::inline kernels
