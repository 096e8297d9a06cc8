// SPDX-License-Identifier: Apache-2.0
#include "export/codec/row_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/error.h"
#include "export/codec/states.h"

namespace kvs::inline exporting {

/// The outliers of a block, in the order of tokens.
struct RowCodec::Outliers {
  std::vector<std::uint32_t> tokens;  // from the first one of the block
  std::vector<std::byte> rows;
};

kvs_codec_group RowCodec::group() const noexcept {
  const Places one = places_of(0, 1, 0);
  kvs_codec_group group = GroupCodec::group();
  group.form = KVS_CODEC_FORM_RANDOM_ACCESS;
  group.block_tokens = 1;
  group.token_bytes = one.positions - one.codes;
  group.outlier_bytes = outlier_bytes(products().shape, layers().size());
  return group;
}

StreamRows RowCodec::stream_rows() const noexcept {
  return products().rows == TransformRows::kHead ? StreamRows::kHead : StreamRows::kLayer;
}

RowCodec::Places RowCodec::places_of(std::size_t sinks, std::size_t coded, std::size_t outliers) const noexcept {
  // No product overflows: numbers of tokens are below 2³², and the tensors have n² values for the n values of a token.
  const auto& [heads, head_dim] = products().shape;
  const bool by_head = products().rows == TransformRows::kHead;
  const std::size_t keys = by_head ? head_dim : products().weights.size(),
                    token_bytes = (by_head ? heads : 1) * rows_bytes(products().types.k.format, keys, 1) +
                                  (by_head ? heads * rows_bytes(products().types.v.format, head_dim, 1) : 0);
  Places places{.sinks = sinks,
                .coded = coded,
                .outliers = outliers,
                .codes = StreamHead::kBytes + sinks * sink_bytes(),
                .positions = 0,
                .rows = 0,
                .bytes = 0,
                .row_bytes = layers().size() * recent_bytes(products().shape)};
  places.positions = places.codes + coded * token_bytes;
  places.rows = places.positions + outliers * sizeof(std::uint32_t);
  places.bytes = places.rows + outliers * places.row_bytes;
  return places;
}

StoredRows RowCodec::rows_at(const std::byte* codes, std::size_t coded, bool keys) const {
  const bool by_head = products().rows == TransformRows::kHead;
  const auto& [heads, head_dim] = products().shape;
  const RowType& type = keys ? products().types.k : products().types.v;
  StoredRows rows;
  rows.shape = {1, by_head ? heads : 1, coded, by_head ? head_dim : products().weights.size()};
  rows.format = type.format;
  rows.count = coded;
  rows.scales = {std::span<const float>(type.scales), {type.scales.size()}};
  rows.data = keys ? codes : codes + heads * rows_bytes(products().types.k.format, head_dim, coded);
  return rows;
}

template <class Act>
void RowCodec::each_outlier_row(const Parts& parts, const std::byte* row, const Act& act) const {
  const auto& [heads, head_dim] = products().shape;
  StoredRows held;
  held.shape = {1, heads, 1, head_dim};
  held.format = outlier_format(head_dim);
  held.count = 1;
  held.data = row;
  for (const TokenRows::Part& part : parts)
    for (const RowBuffer::Part* const rows : {&part.k, &part.v}) {
      act(rows->view(), held);
      held.data = static_cast<const std::byte*>(held.data) + recent_bytes(products().shape) / 2;
    }
}

std::size_t RowCodec::bound(const kvs_codec_block& block) const {
  check_block(block);
  const std::size_t sinks = sinks_of(block.first_position, block.tokens), coded = block.tokens - sinks;
  if (products().rows == TransformRows::kHead) return places_of(sinks, coded, 0).bytes;
  // outlier_threshold() is infinite beyond their share and kMoreOutliers.
  const double share = products().outliers * static_cast<double>(block.coded_before + coded) -
                       static_cast<double>(block.outliers_before);
  const double most =
      std::clamp(std::ceil(share) + static_cast<double>(kMoreOutliers), 0.0, static_cast<double>(coded));
  return places_of(sinks, coded, static_cast<std::size_t>(most)).bytes;
}

std::size_t RowCodec::encode(CpuCoding& ops, int threads, const kvs_codec_block& block, const GroupStates& states,
                             std::span<std::byte> out) const {
  check_block(block);
  StreamHead head = head_of(block, stream_rows());
  const std::size_t coded = block.tokens - head.sinks;
  const Places least = places_of(head.sinks, coded, 0);
  if (least.bytes > out.size()) return bound(block);
  Outliers outliers;
  encode_slabs(ops, threads, block, kSlab, states,
               [&](const Slab& slab, const Parts& parts, const BackendView<const float, 4>& inputs) {
                 if (slab.first < head.sinks)
                   return write_sinks(parts, out.data() + StreamHead::kBytes + slab.first * sink_bytes());
                 encode_coded(ops, block, slab, parts, inputs, out.data() + least.codes, outliers);
               });
  head.outliers = static_cast<std::uint32_t>(outliers.tokens.size());
  const Places places = places_of(head.sinks, coded, head.outliers);
  if (places.bytes > out.size()) return places.bytes;
  write_head(head, out);
  if (outliers.tokens.empty()) return places.bytes;
  std::memcpy(out.data() + places.positions, outliers.tokens.data(), outliers.tokens.size() * sizeof(std::uint32_t));
  std::memcpy(out.data() + places.rows, outliers.rows.data(), outliers.rows.size());
  return places.bytes;
}

void RowCodec::encode_coded(CpuCoding& ops, const kvs_codec_block& block, const Slab& slab, const Parts& parts,
                            const BackendView<const float, 4>& inputs, std::byte* codes, Outliers& outliers) const {
  const std::size_t sinks = sinks_of(block.first_position, block.tokens), coded = block.tokens - sinks,
                    at = slab.first - sinks;  // the first token's row
  const RowValues values = values_of(ops, parts, inputs);
  const StoredRows held = rows_at(codes, coded, true);
  ops.encode_rows(values.k, 0, slab.count, held, at);
  if (products().rows == TransformRows::kHead)
    return ops.encode_rows(values.v, 0, slab.count, rows_at(codes, coded, false), at);
  const RowBuffer::Part decoded(ops.memory(), {1, 1, slab.count, products().weights.size()});
  ops.decode_rows(held, at, decoded.view());
  const std::vector<double> costs = error_costs(ops, products(), values, 0, decoded);
  const std::size_t row_bytes = places_of(0, 0, 0).row_bytes;
  for (std::size_t n = 0; n < slab.count; ++n) {
    const std::size_t found = block.outliers_before + outliers.tokens.size();
    if (costs[n] <= outlier_threshold(products(), block.coded_before + at + n, found)) continue;
    outliers.tokens.push_back(static_cast<std::uint32_t>(slab.first + n));
    const std::size_t begin = outliers.rows.size();
    outliers.rows.resize(begin + row_bytes);
    each_outlier_row(parts, outliers.rows.data() + begin, [&](const BackendView<float, 4>& rows, const StoredRows& to) {
      ops.encode_rows(rows, n, 1, to, 0);
    });
  }
}

RowCodec::Places RowCodec::checked_places(const StreamHead& head, std::span<const std::byte> stream) const {
  check_head(head, stream_rows());
  const std::size_t coded = head.tokens - head.sinks;
  if (head.outliers > (products().rows == TransformRows::kHead ? 0 : coded))
    throw Error(ErrorCode::kData, "stream: outliers",
                "found " + std::to_string(head.outliers) + " of " + std::to_string(coded) + " coded tokens");
  const Places places = places_of(head.sinks, coded, head.outliers);
  check_field("bytes", stream.size(), places.bytes);
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

kvs_codec_stream RowCodec::inspect(std::span<const std::byte> stream) const {
  const StreamHead head = read_head(stream);
  (void)checked_places(head, stream);
  return content_of(head);
}

void RowCodec::decode(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first,
                      std::size_t count, const GroupStates& states) const {
  const StreamHead head = read_head(stream);
  const Places places = checked_places(head, stream);
  decode_slabs(ops, threads, head, {first, count}, kSlab, states,
               [&](const Slab& slab, const BackendView<const float, 4>& inputs) {
                 return read(ops, stream, places, slab, inputs);
               });
}

RowCodec::Parts RowCodec::read(CpuCoding& ops, std::span<const std::byte> stream, const Places& places,
                               const Slab& slab, const BackendView<const float, 4>& inputs) const {
  if (slab.first < places.sinks)
    return read_sinks(ops, stream.data() + StreamHead::kBytes + slab.first * sink_bytes(), slab.count);
  const auto decoded = [&](bool keys) {
    const StoredRows held = rows_at(stream.data() + places.codes, places.coded, keys);
    RowBuffer::Part rows(ops.memory(), {1, held.shape[1], slab.count, held.values()});
    ops.decode_rows(held, slab.first - places.sinks, rows.view());
    return rows;
  };
  TokenRows::Part rows{decoded(true), {}};
  if (products().rows == TransformRows::kHead) {
    rows.v = decoded(false);
    Parts parts;
    parts.push_back(states_of(ops, products(), std::move(rows)));
    return parts;
  }
  Parts parts = parts_of(ops, rows.k.view(), inputs);
  put_outliers(ops, stream, places, slab.first, parts);
  return parts;
}

/// Overwrites the outliers among the tokens of `parts`, which begin at token `first` of the block.
void RowCodec::put_outliers(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, std::size_t first,
                            const Parts& parts) const {
  const std::size_t end = first + parts.front().k.view().extent(2);
  const RowBuffer::Part one(ops.memory(),
                            {1, products().shape.kv_heads, places.outliers > 0 ? 1U : 0U, products().shape.head_dim});
  for (std::size_t n = 0; n < places.outliers; ++n) {
    std::uint32_t token = 0;
    std::memcpy(&token, stream.data() + places.positions + n * sizeof(token), sizeof(token));
    if (token < first || token >= end) continue;
    each_outlier_row(parts, stream.data() + places.rows + n * places.row_bytes,
                     [&](const BackendView<float, 4>& rows, const StoredRows& from) {
                       ops.decode_rows(from, 0, one.view());
                       put_rows(ops.memory(), one.view(), rows, token - first);
                     });
  }
}

}  // namespace kvs::inline exporting
