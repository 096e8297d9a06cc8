// SPDX-License-Identifier: Apache-2.0
// A stream is refused, or every token of it is decoded, and read by attention. The codec has a fixed config: the first
// byte modulo 4 selects rows by layer, by head, two layers in the storage form, or two layers with random access. The
// rest is the stream.
#include <array>
#include <vector>

#include "calibrate/transform/entropy_model.h"
#include "export/codec/row_codec.h"
#include "export/codec/storage_codec.h"
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

constexpr std::size_t kGroupValues = 2 * kValues, kGroupCoefficients = 20, kChannels = 3;

/// Layers 1 and 2 after a prediction, in blocks of four tokens.
kvs::TransformLayer group_of(kvs::TransformForm form) {
  kvs::TransformLayer layer = layer_of(kvs::TransformRows::kLayer);
  layer.others = {2};
  layer.mean.assign(kGroupValues, 0.5F);
  layer.analysis.assign(kGroupCoefficients * kGroupValues, 0.25F);
  layer.synthesis = layer.analysis;
  layer.prediction.assign(kGroupValues * kChannels, 0.125F);
  layer.weights.assign(kGroupCoefficients, 1);
  layer.bits.assign(kGroupCoefficients, 3);
  layer.recent = 4;
  if (form == kvs::TransformForm::kRandomAccess) return layer;
  layer.bits.clear();
  for (std::size_t n = 0; n < kGroupCoefficients; ++n) layer.scales.push_back(static_cast<std::uint8_t>(30 - n));
  layer.entropy = std::make_shared<const kvs::EntropyModel>(kvs::laplacian_model());
  return layer;
}

template <class Codec>
Codec codec_of(const kvs::TransformLayer& layer) {
  kvs::CpuCoding ops(1);
  kvs::StreamId id{};
  id.fill(0x11);
  const auto rope = std::make_shared<kvs::KeyRope>(std::vector<double>{1, 0.1}, 1);
  return {ops, layer, kShape, {rope, rope}, id};
}

/// Attends to all tokens, and to the second half.
void attend(const kvs::RowCodec& codec, kvs::CpuCoding& ops, std::span<const std::byte> stream, std::size_t tokens) {
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
  static const kvs::RowCodec layer = codec_of<kvs::RowCodec>(layer_of(kvs::TransformRows::kLayer)),
                             head = codec_of<kvs::RowCodec>(layer_of(kvs::TransformRows::kHead)),
                             group = codec_of<kvs::RowCodec>(group_of(kvs::TransformForm::kRandomAccess));
  static const auto stored = codec_of<kvs::StorageCodec>(group_of(kvs::TransformForm::kStorage));
  static const std::array<const kvs::GroupCodec*, 4> codecs{&layer, &head, &stored, &group};
  if (size == 0) return 0;
  const kvs::GroupCodec& codec = *codecs[data[0] % codecs.size()];
  const std::span<const std::byte> stream(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  kvs::fuzz::accept_or_refuse([&] {
    const kvs_codec_stream content = codec.inspect(stream);
    kvs::fuzz::require(content.sinks + content.outliers <= content.tokens, "more tokens in full than there are");
    const std::size_t tokens = content.tokens, side = tokens * kValues / 2;
    std::vector<std::uint16_t> memory(codec.layers().size() * 2 * side);
    const std::vector<float> x(tokens * kChannels, 0.5F);
    std::vector<kvs_codec_states> states;
    for (std::size_t n = 0; n < codec.layers().size(); ++n)
      states.push_back({.k = memory.data() + 2 * n * side,
                        .v = memory.data() + (2 * n + 1) * side,
                        .k_token_stride = kValues / 2,
                        .k_head_stride = kShape.head_dim,
                        .v_token_stride = kValues / 2,
                        .v_head_stride = kShape.head_dim,
                        .type = KVS_CODEC_BF16,
                        .rotated = 1});
    const kvs_codec_inputs inputs{
        .x = x.data(), .token_stride = kChannels, .type = KVS_CODEC_F32, .channels = kChannels};
    kvs::CpuCoding ops(1);
    codec.decode(ops, 1, stream, 0, tokens, {states, &inputs});
    codec.decode(ops, 1, stream, tokens / 2, tokens - tokens / 2, {states, &inputs});
    if (&codec == &head) attend(head, ops, stream, tokens);
  });
  return 0;
}
