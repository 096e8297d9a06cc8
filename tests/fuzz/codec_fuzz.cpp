// SPDX-License-Identifier: Apache-2.0
// A stream is refused, or every token of it is decoded, and read by attention. The codec has a fixed config with rows
// by layer, or by head if the first byte is odd; the rest is the stream.
#include <array>
#include <vector>

#include "export/codec/layer_codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr kvs::TransformShape kShape{.kv_heads = 2, .head_dim = 4};
constexpr std::size_t kValues = 2 * kShape.kv_heads * kShape.head_dim;

kvs::TransformLayer layer_of(kvs::TransformRows rows) {
  const bool heads = rows == kvs::TransformRows::kHead;
  const std::size_t size = heads ? kShape.kv_heads * kShape.head_dim * kShape.head_dim : kValues * kValues;
  kvs::TransformLayer layer{.layer = 1,
                            .rows = rows,
                            .mean = std::vector<float>(kValues, 0.5F),
                            .analysis = std::vector<float>(size, 0.25F),
                            .synthesis = std::vector<float>(size, 0.25F),
                            .bits = std::vector<std::size_t>(kValues, 3),
                            .weights = std::vector<float>(kValues, 1),
                            .threshold = 1,
                            .outliers = 0.1,
                            .books = std::vector<float>(kvs::kTrellisBooks, 0.5F),
                            .sinks = 2,
                            .recent = 0};
  if (heads) layer.deviations.assign(kValues / 2, 1);
  return layer;
}

kvs::LayerCodec codec_of(kvs::TransformRows rows) {
  kvs::CpuCoding ops(1);
  kvs::StreamId id{};
  id.fill(0x11);
  return {ops, layer_of(rows), kShape, std::make_shared<kvs::KeyRope>(std::vector{1, 0.1}, 1), id};
}

/// Attends to all tokens, and to the second half.
void attend(const kvs::LayerCodec& codec, kvs::CpuCoding& ops, std::span<const std::byte> stream, std::size_t tokens) {
  constexpr std::size_t kHeads = 2 * kShape.kv_heads;
  const std::array<float, kHeads * kShape.head_dim> q{1, 2, 3};
  std::array<float, kHeads * kShape.head_dim> out{};
  std::array<float, kHeads> sums{};
  const kvs_codec_queries queries{
      .q = q.data(), .head_stride = kShape.head_dim, .type = KVS_CODEC_F32, .heads = kHeads, .scale = 1, .softcap = 0};
  for (const std::size_t first : {std::size_t{0}, tokens / 2})
    codec.attend(ops, 1, stream, first, tokens - first, queries, out.data(), sums.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array codecs{codec_of(kvs::TransformRows::kLayer), codec_of(kvs::TransformRows::kHead)};
  if (size == 0) return 0;
  const kvs::LayerCodec& codec = codecs[data[0] % 2];
  const std::span<const std::byte> stream(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  kvs::fuzz::accept_or_refuse([&] {
    const kvs_codec_stream content = codec.inspect(stream);
    kvs::fuzz::require(content.sinks + content.outliers <= content.tokens, "more tokens in full than there are");
    std::vector<std::uint16_t> k(std::size_t{content.tokens} * kValues / 2), v(k.size());
    const kvs_codec_states states{.k = k.data(),
                                  .v = v.data(),
                                  .k_token_stride = kValues / 2,
                                  .k_head_stride = kShape.head_dim,
                                  .v_token_stride = kValues / 2,
                                  .v_head_stride = kShape.head_dim,
                                  .type = KVS_CODEC_BF16,
                                  .rotated = 1};
    kvs::CpuCoding ops(1);
    codec.decode(ops, 1, stream, 0, content.tokens, states);
    codec.decode(ops, 1, stream, content.tokens / 2, content.tokens - content.tokens / 2, states);
    if (data[0] % 2 == 1) attend(codec, ops, stream, content.tokens);
  });
  return 0;
}
