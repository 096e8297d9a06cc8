// SPDX-License-Identifier: Apache-2.0
#include "export/codec/states.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/tiles.h"

namespace kvs::inline exporting {
namespace {

RowFormat format_of(std::uint32_t type) {
  switch (type) {
    case KVS_CODEC_F32:
      return {.kind = RowKind::kF32};
    case KVS_CODEC_F16:
      return {.kind = RowKind::kF16};
    default:
      return {.kind = RowKind::kBF16};
  }
}

/// Keys, or values, of a caller.
struct Side {
  void* data;
  std::size_t token_stride, head_stride;
};

/// Converts the rows of tokens from `first` on with `code`, between a caller's memory and `rows` [1, head, token,
/// value].
void convert(const Side& side, std::uint32_t type, std::size_t first, const BackendView<float, 4>& rows, int threads,
             void (*code)(const cpu::CodedRows&) noexcept) {
  const RowFormat format = format_of(type);
  const std::size_t heads = rows.extent(1), tokens = rows.extent(2), values = rows.extent(3),
                    item = rows_bytes(format, 1, 1), scratch = unit_scratch(format, values);
  std::vector<float> spare(static_cast<std::size_t>(threads) * scratch);
#pragma omp parallel for num_threads(threads) schedule(static) if (heads * tokens > 256)
  for (std::size_t row = 0; row < heads * tokens; ++row) {
    const std::size_t head = row / tokens, token = first + row % tokens;
    code({.format = format,
          .values = values,
          .rows = 1,
          .tables = {},
          .bytes = static_cast<std::uint8_t*>(side.data) + (token * side.token_stride + head * side.head_stride) * item,
          .x = rows.data() + row * values,
          .scratch = spare.data() + cpu::this_worker() * scratch});
  }
}

/// @throws Error kUsage naming the first token with NaN or infinity
void check_finite(const char* what, const BackendView<float, 4>& rows, std::size_t first) {
  constexpr std::uint32_t kInfinity = 0x7f800000U;
  std::uint32_t largest = 0;
  for (const float value : rows.span()) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffffU);
  if (largest < kInfinity) return;
  const auto bad = std::ranges::find_if(
      rows.span(), [](float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7fffffffU) >= kInfinity; });
  const auto row = static_cast<std::size_t>(bad - rows.span().begin()) / rows.extent(3);
  throw Error(ErrorCode::kUsage, what,
              "token " + std::to_string(first + row % rows.extent(2)) + ", head " +
                  std::to_string(row / rows.extent(2)) + ": found NaN or infinity, expected finite numbers");
}

void require(bool holds, const char* field, const std::string& problem) {
  if (!holds) throw Error(ErrorCode::kUsage, field, problem);
}

void check_type(std::uint32_t type, const char* field) {
  require(type <= KVS_CODEC_BF16, field, "found " + std::to_string(type) + ", expected a kvs_codec_type");
}

}  // namespace

void check_states(const kvs_codec_states& states) {
  require(states.k != nullptr, "states: k", "found NULL, expected keys");
  require(states.v != nullptr, "states: v", "found NULL, expected values");
  check_type(states.type, "states: type");
  require(states.rotated <= 1, "states: rotated", "found " + std::to_string(states.rotated) + ", expected 0 or 1");
}

void check_inputs(const kvs_codec_inputs* inputs, std::size_t channels) {
  require(inputs != nullptr && inputs->x != nullptr, "inputs",
          "found NULL, expected the tokens' embeddings, which rows are predicted from");
  check_type(inputs->type, "inputs: type");
  require(inputs->channels == channels, "inputs: channels",
          "found " + std::to_string(inputs->channels) + ", expected " + std::to_string(channels));
}

RowBuffer::Part gather_inputs(DeviceMemory& memory, const kvs_codec_inputs* inputs, std::size_t channels,
                              std::size_t first, std::size_t count, int threads) {
  if (channels == 0) return {};
  RowBuffer::Part rows(memory, {1, 1, count, channels});
  // const_cast is safe: the rows are only read.
  convert({const_cast<void*>(inputs->x), inputs->token_stride, 0}, inputs->type, first, rows.view(), threads,
          cpu::loops().decode_rows);
  check_finite("inputs", rows.view(), first);
  return rows;
}

TokenRows::Part gather_states(DeviceMemory& memory, const kvs_codec_states& states, const TransformShape& shape,
                              std::size_t first, std::size_t count, int threads) {
  const auto gather = [&](const char* what, const Side& side) {
    RowBuffer::Part rows(memory, {1, shape.kv_heads, count, shape.head_dim});
    convert(side, states.type, first, rows.view(), threads, cpu::loops().decode_rows);
    check_finite(what, rows.view(), first);
    return rows;
  };
  RowBuffer::Part k = gather("states: k", {states.k, states.k_token_stride, states.k_head_stride});
  return {std::move(k), gather("states: v", {states.v, states.v_token_stride, states.v_head_stride})};
}

RowBuffer::Part gather_queries(DeviceMemory& memory, const kvs_codec_queries& queries, const TransformShape& shape,
                               int threads) {
  require(queries.q != nullptr, "queries: q", "found NULL, expected queries");
  check_type(queries.type, "queries: type");
  require(queries.heads > 0 && queries.heads % shape.kv_heads == 0 && queries.heads / shape.kv_heads <= kMaxQueryRows,
          "queries: heads",
          "found " + std::to_string(queries.heads) + ", expected a multiple of " + std::to_string(shape.kv_heads) +
              ", at most " + std::to_string(shape.kv_heads * kMaxQueryRows));
  require(std::isfinite(queries.scale), "queries: scale", "found NaN or infinity, expected a finite number");
  require(std::isfinite(queries.softcap) && queries.softcap >= 0, "queries: softcap",
          "found a number below 0, NaN or infinity, expected one from 0 on");
  RowBuffer::Part rows(memory, {1, queries.heads, 1, shape.head_dim});
  // const_cast is safe: the rows are only read.
  convert({const_cast<void*>(queries.q), 0, queries.head_stride}, queries.type, 0, rows.view(), threads,
          cpu::loops().decode_rows);
  check_finite("queries: q", rows.view(), 0);
  return rows;
}

void scatter_states(const TokenRows::Part& part, const kvs_codec_states& states, std::size_t first, int threads) {
  const auto scatter = [&](const RowBuffer::Part& rows, const Side& side) {
    convert(side, states.type, first, rows.view(), threads, cpu::loops().encode_rows);
  };
  scatter(part.k, {states.k, states.k_token_stride, states.k_head_stride});
  scatter(part.v, {states.v, states.v_token_stride, states.v_head_stride});
}

}  // namespace kvs::inline exporting
