// SPDX-License-Identifier: Apache-2.0
#include "export/codec/layer_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/error.h"
#include "export/codec/states.h"

namespace kvs::inline exporting {
namespace {

/// Largest number of tokens that are in f32 at the same time.
constexpr std::size_t kSlab = 512;
/// Positions are exact as f32 up to this one.
constexpr std::uint64_t kMaxPosition = std::uint64_t{1} << 24;

/// Copies one token between the heads of `part` and contiguous keys, then values.
template <class Copy>
void each_head_row(const TokenRows::Part& part, std::size_t token, Copy copy) {
  for (const RowBuffer::Part* const rows : {&part.k, &part.v}) {
    const auto [one, heads, tokens, values] = rows->view().shape();
    for (std::size_t head = 0; head < heads; ++head)
      copy(rows->view().data() + (head * tokens + token) * values, values * sizeof(float));
  }
}

void check_block(const kvs_codec_block& block) {
  const auto require = [](bool holds, const char* field, std::uint64_t found, const char* expected) {
    if (!holds)
      throw Error(ErrorCode::kUsage, std::string("block: ") + field,
                  "found " + std::to_string(found) + ", expected " + expected);
  };
  constexpr const char* kPositions = "positions below 16777216";
  require(block.tokens > 0, "tokens", 0, "at least 1");
  require(block.tokens <= kMaxPosition, "tokens", block.tokens, kPositions);
  require(block.first_position <= kMaxPosition - block.tokens, "first_position", block.first_position, kPositions);
  require(block.coded_before <= block.first_position, "coded_before", block.coded_before, "at most first_position");
  require(block.outliers_before <= block.coded_before, "outliers_before", block.outliers_before,
          "at most coded_before");
}

}  // namespace

/// The outliers of a block, in the order of tokens.
struct LayerCodec::Outliers {
  std::vector<std::uint32_t> tokens;  // from the first one of the block
  std::vector<std::byte> rows;
};

LayerCodec::LayerCodec(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape,
                       std::shared_ptr<const KeyRope> rope, const StreamId& id)
    : products_(ops, layer, shape), layer_(layer.layer), rope_(std::move(rope)), id_(id) {}

kvs_codec_layout LayerCodec::layout() const noexcept {
  const Places one = places_of(1, 1, 0);
  return {.rows = static_cast<std::uint32_t>(products_.rows),
          .kv_heads = static_cast<std::uint32_t>(products_.shape.kv_heads),
          .head_dim = static_cast<std::uint32_t>(products_.shape.head_dim),
          .sinks = products_.sinks,
          .recent = products_.recent,
          .outliers = products_.outliers,
          .head_bytes = StreamHead::kBytes,
          .sink_bytes = one.sink_bytes,
          .token_bytes = one.positions - one.codes,
          .outlier_bytes = outlier_bytes(products_.shape)};
}

std::size_t LayerCodec::sinks_of(std::uint64_t first_position, std::size_t tokens) const noexcept {
  return std::min<std::size_t>(tokens, products_.sinks - std::min<std::size_t>(products_.sinks, first_position));
}

LayerCodec::Places LayerCodec::places_of(std::size_t sinks, std::size_t coded, std::size_t outliers) const noexcept {
  // No product overflows: numbers of tokens are below 2³², and the tensors have n² values for the n values of a token.
  const auto& [heads, head_dim] = products_.shape;
  const bool by_head = products_.rows == TransformRows::kHead;
  const std::size_t keys = by_head ? head_dim : products_.weights.size(),
                    token_bytes = (by_head ? heads : 1) * rows_bytes(products_.types.k.format, keys, 1) +
                                  (by_head ? heads * rows_bytes(products_.types.v.format, head_dim, 1) : 0);
  Places places{.sinks = sinks,
                .coded = coded,
                .outliers = outliers,
                .codes = 0,
                .positions = 0,
                .rows = 0,
                .bytes = 0,
                .sink_bytes = 2 * heads * head_dim * sizeof(float),
                .row_bytes = recent_bytes(products_.shape)};
  places.codes = StreamHead::kBytes + sinks * places.sink_bytes;
  places.positions = places.codes + coded * token_bytes;
  places.rows = places.positions + outliers * sizeof(std::uint32_t);
  places.bytes = places.rows + outliers * places.row_bytes;
  return places;
}

StoredRows LayerCodec::rows_at(const std::byte* codes, std::size_t coded, bool keys) const {
  const bool by_head = products_.rows == TransformRows::kHead;
  const auto& [heads, head_dim] = products_.shape;
  const RowType& type = keys ? products_.types.k : products_.types.v;
  StoredRows rows;
  rows.shape = {1, by_head ? heads : 1, coded, by_head ? head_dim : products_.weights.size()};
  rows.format = type.format;
  rows.count = coded;
  rows.scales = {std::span<const float>(type.scales), {type.scales.size()}};
  rows.data = keys ? codes : codes + heads * rows_bytes(products_.types.k.format, head_dim, coded);
  return rows;
}

StoredRows LayerCodec::outlier_rows(const std::byte* rows) const noexcept {
  StoredRows held;
  held.shape = {1, products_.shape.kv_heads, 1, products_.shape.head_dim};
  held.format = outlier_format(products_.shape.head_dim);
  held.count = 1;
  held.data = rows;
  return held;
}

std::size_t LayerCodec::bound(const kvs_codec_block& block) const {
  check_block(block);
  const std::size_t sinks = sinks_of(block.first_position, block.tokens), coded = block.tokens - sinks;
  if (products_.rows == TransformRows::kHead) return places_of(sinks, coded, 0).bytes;
  // outlier_threshold() is infinite beyond their share and kMoreOutliers.
  const double share =
      products_.outliers * static_cast<double>(block.coded_before + coded) - static_cast<double>(block.outliers_before);
  const double most =
      std::clamp(std::ceil(share) + static_cast<double>(kMoreOutliers), 0.0, static_cast<double>(coded));
  return places_of(sinks, coded, static_cast<std::size_t>(most)).bytes;
}

std::size_t LayerCodec::encode(CpuCoding& ops, int threads, const kvs_codec_block& block,
                               const kvs_codec_states& states, std::span<std::byte> out) const {
  check_block(block);
  check_states(states);
  const std::size_t sinks = sinks_of(block.first_position, block.tokens), coded = block.tokens - sinks;
  if (const Places least = places_of(sinks, coded, 0); least.bytes > out.size()) return bound(block);
  Outliers outliers;
  for (std::size_t first = 0; first < block.tokens; first += kSlab) {
    const std::size_t count = std::min<std::size_t>(kSlab, block.tokens - first);
    const TokenRows::Part part = gather_states(ops.memory(), states, products_.shape, first, count, threads);
    if (states.rotated != 0) rotate(ops, part, block.first_position + first, RopeDirection::kInverse);
    encode_coded(ops, block, part, first, sinks, out, outliers);
  }
  const Places places = places_of(sinks, coded, outliers.tokens.size());
  if (places.bytes > out.size()) return places.bytes;
  write_head({.rows = static_cast<std::uint16_t>(products_.rows),
              .id = id_,
              .layer = static_cast<std::uint32_t>(layer_),
              .tokens = block.tokens,
              .first_position = block.first_position,
              .sinks = static_cast<std::uint32_t>(sinks),
              .outliers = static_cast<std::uint32_t>(outliers.tokens.size())},
             out);
  if (outliers.tokens.empty()) return places.bytes;
  std::memcpy(out.data() + places.positions, outliers.tokens.data(), outliers.tokens.size() * sizeof(std::uint32_t));
  std::memcpy(out.data() + places.rows, outliers.rows.data(), outliers.rows.size());
  return places.bytes;
}

void LayerCodec::encode_coded(CpuCoding& ops, const kvs_codec_block& block, const TokenRows::Part& part,
                              std::size_t first, std::size_t sinks, std::span<std::byte> out,
                              Outliers& outliers) const {
  const Places places = places_of(sinks, block.tokens - sinks, 0);
  const std::size_t tokens = part.k.view().extent(2), full = places.sinks_among(first, tokens), count = tokens - full,
                    at = first + full - sinks;  // number of coded tokens; the first one's row
  std::byte* to = out.data() + StreamHead::kBytes + first * places.sink_bytes;
  for (std::size_t token = 0; token < full; ++token)
    each_head_row(part, token, [&](const float* row, std::size_t bytes) {
      std::memcpy(to, row, bytes);
      to += bytes;
    });
  if (count == 0) return;
  const std::byte* const codes = out.data() + places.codes;
  const TokenStates of_layer{part.k.view(), part.v.view()};
  const RowValues values = row_values(ops, products_, {&of_layer, 1});
  const StoredRows held = rows_at(codes, places.coded, true);
  ops.encode_rows(values.k, full, count, held, at);
  if (products_.rows == TransformRows::kHead)
    return ops.encode_rows(values.v, full, count, rows_at(codes, places.coded, false), at);
  const RowBuffer::Part decoded(ops.memory(), {1, 1, count, products_.weights.size()});
  ops.decode_rows(held, at, decoded.view());
  const std::vector<double> costs = error_costs(ops, products_, values, full, decoded);
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t found = block.outliers_before + outliers.tokens.size();
    if (costs[n] <= outlier_threshold(products_, block.coded_before + at + n, found)) continue;
    outliers.tokens.push_back(static_cast<std::uint32_t>(first + full + n));
    const std::size_t begin = outliers.rows.size();
    outliers.rows.resize(begin + places.row_bytes);
    std::byte* const row = outliers.rows.data() + begin;
    ops.encode_rows(part.k.view(), full + n, 1, outlier_rows(row), 0);
    ops.encode_rows(part.v.view(), full + n, 1, outlier_rows(row + places.row_bytes / 2), 0);
  }
}

LayerCodec::Places LayerCodec::checked_places(const StreamHead& head, std::span<const std::byte> stream) const {
  const auto require = [](const char* field, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      throw Error(ErrorCode::kData, std::string("stream: ") + field,
                  "found " + std::to_string(found) + ", expected " + std::to_string(expected));
  };
  if (head.id != id_) throw Error(ErrorCode::kData, "stream", "found a stream of another config");
  require("layer", head.layer, layer_);
  require("rows", head.rows, static_cast<std::uint64_t>(products_.rows));
  if (head.tokens == 0 || head.tokens > kMaxPosition || head.first_position > kMaxPosition - head.tokens)
    throw Error(ErrorCode::kData, "stream: tokens",
                "found " + std::to_string(head.tokens) + " from position " + std::to_string(head.first_position) +
                    " on, expected positions below 16777216");
  require("sinks", head.sinks, sinks_of(head.first_position, head.tokens));
  const std::size_t coded = head.tokens - head.sinks;
  if (head.outliers > (products_.rows == TransformRows::kHead ? 0 : coded))
    throw Error(ErrorCode::kData, "stream: outliers",
                "found " + std::to_string(head.outliers) + " of " + std::to_string(coded) + " coded tokens");
  const Places places = places_of(head.sinks, coded, head.outliers);
  require("bytes", stream.size(), places.bytes);
  std::uint64_t least = head.sinks;
  for (std::size_t n = 0; n < head.outliers; ++n) {
    std::uint32_t token = 0;
    std::memcpy(&token, stream.data() + places.positions + n * sizeof(token), sizeof(token));
    if (token < least || token >= head.tokens)
      throw Error(ErrorCode::kData, "stream: outlier " + std::to_string(n),
                  "found token " + std::to_string(token) + ", expected one from " + std::to_string(least) + " to " +
                      std::to_string(head.tokens - 1));
    least = std::uint64_t{token} + 1;
  }
  return places;
}

kvs_codec_stream LayerCodec::inspect(std::span<const std::byte> stream) const {
  const StreamHead head = read_head(stream);
  (void)checked_places(head, stream);
  return {.layer = head.layer,
          .tokens = head.tokens,
          .first_position = head.first_position,
          .sinks = head.sinks,
          .outliers = head.outliers};
}

void check_tokens(const StreamHead& head, std::size_t first, std::size_t count, std::size_t least) {
  if (count < least || first > head.tokens || count > head.tokens - first)
    throw Error(ErrorCode::kUsage, "tokens",
                "found " + std::to_string(count) + " from " + std::to_string(first) + " on, expected at least " +
                    std::to_string(least) + " of " + std::to_string(head.tokens));
}

void LayerCodec::decode(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first,
                        std::size_t count, const kvs_codec_states& states) const {
  const StreamHead head = read_head(stream);
  const Places places = checked_places(head, stream);
  check_states(states);
  check_tokens(head, first, count, 0);
  for (std::size_t at = first; at < first + count; at += kSlab) {
    const TokenRows::Part part = read_tokens(ops, stream, places, at, std::min(kSlab, first + count - at));
    if (states.rotated != 0) rotate(ops, part, head.first_position + at, RopeDirection::kForward);
    scatter_states(part, states, at - first, threads);
  }
}

TokenRows::Part LayerCodec::read_tokens(CpuCoding& ops, std::span<const std::byte> stream, const Places& places,
                                        std::size_t first, std::size_t count) const {
  TokenRows::Part part = empty_part(ops.memory(), products_.shape, count);
  const std::size_t full = places.sinks_among(first, count);
  const std::byte* from = stream.data() + StreamHead::kBytes + first * places.sink_bytes;
  for (std::size_t token = 0; token < full; ++token)
    each_head_row(part, token, [&](float* row, std::size_t bytes) {
      std::memcpy(row, from, bytes);
      from += bytes;
    });
  if (full < count) put_coded(ops, stream, places, first + full - places.sinks, part, full);
  put_outliers(ops, stream, places, first, part);
  return part;
}

/// Decodes rows from `first` on to the tokens of `part` from `to` on.
void LayerCodec::put_coded(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, std::size_t first,
                           TokenRows::Part& part, std::size_t to) const {
  const std::size_t count = part.k.view().extent(2) - to;
  const auto decoded = [&](bool keys) {
    const StoredRows held = rows_at(stream.data() + places.codes, places.coded, keys);
    RowBuffer::Part rows(ops.memory(), {1, held.shape[1], count, held.values()});
    ops.decode_rows(held, first, rows.view());
    return rows;
  };
  TokenRows::Part rows{decoded(true), {}};
  if (products_.rows == TransformRows::kHead) rows.v = decoded(false);
  const TokenRows::Part states = states_of(ops, products_, std::move(rows));
  put_rows(ops.memory(), states.k.view(), part.k.view(), to);
  put_rows(ops.memory(), states.v.view(), part.v.view(), to);
}

/// Overwrites the outliers among the tokens of `part`, which begin at token `first` of the block.
void LayerCodec::put_outliers(CpuCoding& ops, std::span<const std::byte> stream, const Places& places,
                              std::size_t first, TokenRows::Part& part) const {
  const std::size_t end = first + part.k.view().extent(2);
  const TokenRows::Part one = empty_part(ops.memory(), products_.shape, places.outliers > 0 ? 1 : 0);
  for (std::size_t n = 0; n < places.outliers; ++n) {
    std::uint32_t token = 0;
    std::memcpy(&token, stream.data() + places.positions + n * sizeof(token), sizeof(token));
    if (token < first || token >= end) continue;
    const std::byte* const row = stream.data() + places.rows + n * places.row_bytes;
    ops.decode_rows(outlier_rows(row), 0, one.k.view());
    ops.decode_rows(outlier_rows(row + places.row_bytes / 2), 0, one.v.view());
    put_rows(ops.memory(), one.k.view(), part.k.view(), token - first);
    put_rows(ops.memory(), one.v.view(), part.v.view(), token - first);
  }
}

/// Rotates the keys of `part`, whose first token is at `position`.
void LayerCodec::rotate(CpuCoding& ops, const TokenRows::Part& part, std::size_t position,
                        RopeDirection direction) const {
  if (rope_->chunks() == 0) return;
  const KeyRope::Rows rows = rope_->rows(ops.memory(), position, part.k.view().extent(2));
  ops.rope(part.k.view(), rows.table, direction);
}

}  // namespace kvs::inline exporting
