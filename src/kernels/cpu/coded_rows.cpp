// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/coded_rows.h"

#include "kernels/cpu/checks.h"
#include "kernels/cpu/tiles.h"

namespace kvs::cpu {
namespace {

void check(const StoredRows& held, std::size_t heads, std::size_t values, std::size_t first, std::size_t count) {
  require(held.shape[0] == 1 && held.shape[1] == heads && held.values() == values, "rows", "held rows of these heads");
  require(first + count <= held.shape[2], "rows", "room for them");
  require(!held.format.across_tokens || (first % held.format.group == 0 && count % held.format.group == 0), "rows",
          "whole units");
}

/// @param x  the rows of head 0; the next head's rows follow after `head_stride` floats
void code_rows(const StoredRows& held, std::size_t first, std::size_t count, const float* x, std::size_t head_stride,
               void (*code)(const CodedRows&) noexcept, std::span<AlignedBuffer> scratch) {
  for (AlignedBuffer& buffer : scratch) buffer.reserve(scratch_floats(held) * sizeof(float));
  const std::size_t heads = held.shape[1], step = rows_of_unit(held.format), units = count / step;
  const bool is_much = heads * count > (held.format.kind == RowKind::kTrellis ? 1 : 256);
#pragma omp parallel for num_threads(static_cast <int>(scratch.size())) schedule(static) if (is_much)
  for (std::size_t task = 0; task < heads * units; ++task) {
    const std::size_t head = task / units, row = task % units * step;
    code(coded(held, 0, head, first + row, step, x + head * head_stride + row * held.values(),
               static_cast<float*>(scratch[this_worker()].data())));
  }
}

}  // namespace

CodedRows coded(const StoredRows& held, std::size_t member, std::size_t head, std::size_t first, std::size_t count,
                const float* x, float* scratch, bool in_basis) {
  // const_cast is safe: see the declaration.
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

void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count, const StoredRows& held,
                 std::size_t at, std::span<AlignedBuffer> scratch) {
  const auto [members, heads, tokens, values] = rows.shape();
  check(held, heads, values, at, count);
  require(members == 1 && first + count <= tokens, "rows", "rows of one sequence");
  code_rows(held, at, count, rows.data() + first * values, tokens * values, loops().encode_rows, scratch);
}

void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out,
                 std::span<AlignedBuffer> scratch) {
  const auto [members, heads, count, values] = out.shape();
  check(held, heads, values, first, count);
  require(members == 1, "rows", "rows of one sequence");
  code_rows(held, first, count, out.data(), count * values, loops().decode_rows, scratch);
}

}  // namespace kvs::cpu
