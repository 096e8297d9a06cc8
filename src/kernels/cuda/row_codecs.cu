// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/codecs/rows.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"

namespace kvs::cuda {
namespace {

/// Rows [first, first + rows) of each head's memory, and their f32 values: [head, stride, values] from row `at` on.
struct CodedRows {
  RowFormat format;
  std::size_t heads, values, rows, head_bytes;
  const float* scales;  // StoredRows::scales, or null
  std::uint8_t* bytes;
  float* x;
  std::size_t stride, at;
  float* scratch;  // [head · unit, scratch_floats]
  std::size_t scratch_floats;
};

/// One thread per row, or per unit of rows that are stored together. A step adds little work, and its data is in the L2
/// cache when a neighbouring thread continues.
template <class Codec, bool Encode>
__global__ void code_units(CodedRows in) {
  const std::size_t step = rows_of_unit(in.format), units = in.rows / step, index = global_index();
  if (index >= in.heads * units) return;
  const std::size_t head = index / units, unit = index % units;
  std::uint8_t* const bytes = in.bytes + head * in.head_bytes + unit * rows_bytes(in.format, in.values, step);
  float* const x = in.x + (head * in.stride + in.at + unit * step) * in.values;
  const RowTables tables = tables_of(in.format, in.scales, in.values, head);
  float* const scratch = in.scratch + index * in.scratch_floats;
  if constexpr (Encode)
    codecs::encode_unit<Codec>(in.format, in.values, tables, x, bytes, scratch);
  else
    codecs::decode_unit<Codec>(in.format, in.values, tables, false, bytes, x, scratch);
}

/// @param rows  [head, stride, value]; rows [at, at + count) are encoded or decoded
template <bool Encode>
void code_rows(const Context& context, const StoredRows& held, std::size_t first, std::size_t count, float* rows,
               std::size_t stride, std::size_t at) {
  const std::size_t heads = held.shape[1], values = held.values(), step = rows_of_unit(held.format);
  require(first + count <= held.shape[2] && count % step == 0 && first % step == 0, "rows", "whole units with room");
  if (count == 0) return;
  const std::size_t scratch_floats = unit_scratch(held.format, values);
  const DeviceArray<float> scratch(context, heads * (count / step) * scratch_floats);
  const CodedRows in{.format = held.format,
                     .heads = heads,
                     .values = values,
                     .rows = count,
                     .head_bytes = held.bytes(held.shape[2]),
                     .scales = held.scales.data(),
                     .bytes = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(held.row(0, 0, first))),
                     .x = rows,
                     .stride = stride,
                     .at = at,
                     .scratch = scratch.data(),
                     .scratch_floats = scratch_floats};
  codecs::with_codec(held.format.kind, [&](auto codec) {
    launch_kernel(Encode ? "encode_rows" : "decode_rows", code_units<decltype(codec), Encode>,
                  {blocks_for(heads * (count / step))}, context.stream(), in);
  });
}

}  // namespace
}  // namespace kvs::cuda

namespace kvs::inline kernels {

void CudaBackend::encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                              const StoredRows& held, std::size_t at) {
  cuda::require(rows.extent(0) == 1 && rows.extent(1) == held.shape[1] && rows.extent(3) == held.values() &&
                    first + count <= rows.extent(2),
                "rows", "rows of one sequence");
  cuda::code_rows<true>(context_, held, at, count, const_cast<float*>(rows.data()), rows.extent(2), first);
}

void CudaBackend::decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) {
  cuda::require(out.extent(0) == 1 && out.extent(1) == held.shape[1] && out.extent(3) == held.values(), "rows",
                "room for rows of one sequence");
  cuda::code_rows<false>(context_, held, first, out.extent(2), out.data(), out.extent(2), 0);
}

StoredRows CudaBackend::plain_rows(const StoredRows& early, const StoredRows& late, const RopeTable& slots,
                                   cuda::DeviceArray<float>& memory) {
  const std::size_t members = early.shape[0], heads = early.shape[1], values = early.values(),
                    count = early.count + late.count;
  memory.reserve(context_, members * heads * count * values);
  const BackendView<float, 4> rows(std::span(memory.data(), members * heads * count * values),
                                   {members, heads, count, values});
  for (const auto& [part, at] : {std::pair(&early, std::size_t{0}), std::pair(&late, early.count)}) {
    if (part->empty()) continue;
    StoredRows all = *part;  // members are contiguous, like heads
    all.shape = {1, members * heads, part->shape[2], values};
    cuda::require(members == 1 || all.scales.empty(), "attention", "a past of one sequence");
    cuda::code_rows<false>(context_, all, 0, part->count, memory.data(), count, at);
  }
  if (!slots.cosine.empty()) rope(rows, slots, 0, RopeDirection::kForward, {});
  return {rows, count};
}

}  // namespace kvs::inline kernels
