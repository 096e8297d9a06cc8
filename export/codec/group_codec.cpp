// SPDX-License-Identifier: Apache-2.0
#include "export/codec/group_codec.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/interrupt.h"
#include "export/codec/states.h"

namespace kvs::inline exporting {
namespace {

/// Copies one token between the heads of `part` and contiguous keys, then values.
template <class Copy>
void each_head_row(const TokenRows::Part& part, std::size_t token, const Copy& copy) {
  for (const RowBuffer::Part* const rows : {&part.k, &part.v}) {
    const auto [one, heads, tokens, values] = rows->view().shape();
    for (std::size_t head = 0; head < heads; ++head)
      copy(rows->view().data() + (head * tokens + token) * values, values * sizeof(float));
  }
}

}  // namespace

void check_block(const kvs_codec_block& block) {
  const auto holds = [](bool good, const char* field, std::uint64_t found, const char* expected) {
    if (!good)
      throw Error(ErrorCode::kUsage, std::string("block: ") + field,
                  "found " + std::to_string(found) + ", expected " + expected);
  };
  constexpr const char* kPositions = "positions below 16777216";
  holds(block.tokens > 0, "tokens", 0, "at least 1");
  holds(block.tokens <= kMaxPosition, "tokens", block.tokens, kPositions);
  holds(block.first_position <= kMaxPosition - block.tokens, "first_position", block.first_position, kPositions);
  holds(block.coded_before <= block.first_position, "coded_before", block.coded_before, "at most first_position");
  holds(block.outliers_before <= block.coded_before, "outliers_before", block.outliers_before, "at most coded_before");
}

void check_tokens(const StreamHead& head, std::size_t first, std::size_t count, std::size_t least) {
  if (count < least || first > head.tokens || count > head.tokens - first)
    throw Error(ErrorCode::kUsage, "tokens",
                "found " + std::to_string(count) + " from " + std::to_string(first) + " on, expected at least " +
                    std::to_string(least) + " of " + std::to_string(head.tokens));
}

void check_field(const char* field, std::uint64_t found, std::uint64_t expected) {
  if (found != expected)
    throw Error(ErrorCode::kData, std::string("stream: ") + field,
                "found " + std::to_string(found) + ", expected " + std::to_string(expected));
}

GroupCodec::GroupCodec(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape,
                       std::vector<std::shared_ptr<const KeyRope>> ropes, const StreamId& id)
    : products_(ops, layer, shape),
      layers_{static_cast<std::uint32_t>(layer.layer)},
      ropes_(std::move(ropes)),
      id_(id) {
  layers_.insert(layers_.end(), layer.others.begin(), layer.others.end());
}

kvs_codec_group GroupCodec::group() const noexcept {
  kvs_codec_group group{};
  group.layers = layers_.data();
  group.count = static_cast<std::uint32_t>(layers_.size());
  group.rows = static_cast<std::uint32_t>(products_.rows);
  group.kv_heads = static_cast<std::uint32_t>(products_.shape.kv_heads);
  group.head_dim = static_cast<std::uint32_t>(products_.shape.head_dim);
  group.channels = static_cast<std::uint32_t>(channels());
  group.sinks = products_.sinks;
  group.recent = products_.recent;
  group.outliers = products_.outliers;
  group.head_bytes = StreamHead::kBytes;
  group.sink_bytes = sink_bytes();
  return group;
}

std::size_t GroupCodec::sink_bytes() const noexcept {
  return layers_.size() * 2 * products_.shape.kv_heads * products_.shape.head_dim * sizeof(float);
}

std::size_t GroupCodec::channels() const noexcept {
  return products_.predicted_rows == nullptr ? 0 : products_.predicted_rows->columns();
}

std::size_t GroupCodec::sinks_of(std::uint64_t first_position, std::size_t tokens) const noexcept {
  return std::min<std::size_t>(tokens, products_.sinks - std::min<std::size_t>(products_.sinks, first_position));
}

void GroupCodec::check_group_states(const GroupStates& states) const {
  for (const kvs_codec_states& of_layer : states.layers) check_states(of_layer);
  if (channels() > 0) check_inputs(states.inputs, channels());
}

std::uint64_t GroupCodec::slab_end(std::uint64_t position, std::size_t unit) const noexcept {
  if (position < products_.sinks) return std::min<std::uint64_t>(position + unit, products_.sinks);
  return position + unit - (position - products_.sinks) % unit;
}

void GroupCodec::encode_slabs(CpuCoding& ops, int threads, const kvs_codec_block& block, std::size_t unit,
                              const GroupStates& states, const Code& code) const {
  check_group_states(states);
  for (std::size_t first = 0; first < block.tokens;) {
    check_interrupt();
    const std::size_t position = block.first_position + first,
                      count = std::min<std::size_t>(block.tokens - first, slab_end(position, unit) - position);
    Parts parts;
    parts.reserve(layers_.size());
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const kvs_codec_states& of_layer = states.layers[layer];
      parts.push_back(gather_states(ops.memory(), of_layer, products_.shape, first, count, threads));
      if (of_layer.rotated != 0) rotate(ops, layer, parts.back(), position, RopeDirection::kInverse);
    }
    const RowBuffer::Part inputs = gather_inputs(ops.memory(), states.inputs, channels(), first, count, threads);
    code({first, count}, parts, inputs.view());
    first += count;
  }
}

void GroupCodec::decode_slabs(CpuCoding& ops, int threads, const StreamHead& head, const Slab& tokens, std::size_t unit,
                              const GroupStates& states, const Read& read) const {
  check_group_states(states);
  check_tokens(head, tokens.first, tokens.count, 0);
  for (std::size_t at = 0; at < tokens.count;) {
    check_interrupt();
    const std::size_t position = head.first_position + tokens.first + at,
                      count = std::min(tokens.count - at, slab_end(position, unit) - position);
    const RowBuffer::Part inputs = gather_inputs(ops.memory(), states.inputs, channels(), at, count, threads);
    const Parts parts = read({tokens.first + at, count}, inputs.view());
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      if (states.layers[layer].rotated != 0) rotate(ops, layer, parts[layer], position, RopeDirection::kForward);
      scatter_states(parts[layer], states.layers[layer], at, threads);
    }
    at += count;
  }
}

RowValues GroupCodec::values_of(CpuCoding& ops, const Parts& parts, const BackendView<const float, 4>& inputs) const {
  std::vector<TokenStates> states;
  states.reserve(parts.size());
  for (const TokenRows::Part& part : parts) states.push_back({part.k.view(), part.v.view()});
  return row_values(ops, products_, states, inputs);
}

GroupCodec::Parts GroupCodec::parts_of(CpuCoding& ops, const BackendView<const float, 4>& rows,
                                       const BackendView<const float, 4>& inputs) const {
  Parts parts;
  parts.reserve(layers_.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    parts.push_back(layer_states(ops, products_, rows, layer, inputs));
  return parts;
}

void GroupCodec::write_sinks(const Parts& parts, std::byte* to) const {
  const std::size_t count = parts.front().k.view().extent(2);
  for (std::size_t token = 0; token < count; ++token)
    for (const TokenRows::Part& part : parts)
      each_head_row(part, token, [&](const float* row, std::size_t bytes) {
        std::memcpy(to, row, bytes);
        to += bytes;
      });
}

GroupCodec::Parts GroupCodec::read_sinks(CpuCoding& ops, const std::byte* from, std::size_t count) const {
  Parts parts;
  parts.reserve(layers_.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    parts.push_back(empty_part(ops.memory(), products_.shape, count));
  for (std::size_t token = 0; token < count; ++token)
    for (const TokenRows::Part& part : parts)
      each_head_row(part, token, [&](float* row, std::size_t bytes) {
        std::memcpy(row, from, bytes);
        from += bytes;
      });
  return parts;
}

StreamHead GroupCodec::head_of(const kvs_codec_block& block, StreamRows rows) const {
  StreamHead head;
  head.rows = static_cast<std::uint16_t>(rows);
  head.id = id_;
  head.layer = layers_.front();
  head.tokens = block.tokens;
  head.first_position = block.first_position;
  head.sinks = static_cast<std::uint32_t>(sinks_of(block.first_position, block.tokens));
  return head;
}

kvs_codec_stream GroupCodec::content_of(const StreamHead& head) noexcept {
  return {.layer = head.layer,
          .tokens = head.tokens,
          .first_position = head.first_position,
          .sinks = head.sinks,
          .outliers = head.outliers};
}

void GroupCodec::check_head(const StreamHead& head, StreamRows rows) const {
  if (head.id != id_) throw Error(ErrorCode::kData, "stream", "found a stream of another config");
  check_field("layer", head.layer, layers_.front());
  check_field("rows", head.rows, static_cast<std::uint64_t>(rows));
  if (head.tokens == 0 || head.tokens > kMaxPosition || head.first_position > kMaxPosition - head.tokens)
    throw Error(ErrorCode::kData, "stream: tokens",
                "found " + std::to_string(head.tokens) + " from position " + std::to_string(head.first_position) +
                    " on, expected positions below 16777216");
  check_field("sinks", head.sinks, sinks_of(head.first_position, head.tokens));
}

void GroupCodec::rotate(CpuCoding& ops, std::size_t layer, const TokenRows::Part& part, std::size_t position,
                        RopeDirection direction) const {
  if (rope(layer).chunks() == 0) return;
  const KeyRope::Rows rows = rope(layer).rows(ops.memory(), position, part.k.view().extent(2));
  ops.rope(part.k.view(), rows.table, direction);
}

}  // namespace kvs::inline exporting
