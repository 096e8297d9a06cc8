// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of blocks by the transform codec, on one thread. Prints gigabytes of f16 states a second in
// each direction, by form of rows, shape and bits of a value; of the storage form by layers, shape and share of the
// coefficients that are coded. Keys come after RoPE.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "calibrate/transform/entropy_model.h"
#include "core/dtype.h"
#include "export/codec/row_codec.h"
#include "export/codec/storage_codec.h"

namespace {

constexpr std::uint32_t kTokens = 512;

std::vector<float> normal_values(std::size_t count, unsigned seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return normal(generator); });
  return values;
}

/// The basis is the identity: a product takes the same time with every basis.
kvs::TransformLayer layer_of(kvs::TransformRows rows, const kvs::TransformShape& shape, std::size_t bits) {
  const bool heads = rows == kvs::TransformRows::kHead;
  const std::size_t values = 2 * shape.kv_heads * shape.head_dim, side = heads ? shape.head_dim : values;
  kvs::TransformLayer layer{.layer = 0,
                            .rows = rows,
                            .mean = std::vector<float>(values),
                            .analysis = std::vector<float>((heads ? shape.kv_heads : 1) * side * side),
                            .synthesis = {},
                            .bits = std::vector<std::size_t>(values, bits),
                            .weights = std::vector<float>(values, 1),
                            .threshold = 1e30,
                            .books = normal_values(kvs::kTrellisBooks, 1, 1)};
  for (std::size_t n = 0; n < layer.analysis.size(); n += side * side)
    for (std::size_t row = 0; row < side; ++row) layer.analysis[n + row * side + row] = 1;
  layer.synthesis = layer.analysis;
  if (heads) layer.deviations.assign(values / 2, 1);
  return layer;
}

/// Layers in the storage form whose first `coded` coefficients are values in 12 to 0.25 steps.
kvs::TransformLayer group_of(std::size_t layers, const kvs::TransformShape& shape, std::size_t coded) {
  const std::size_t values = layers * 2 * shape.kv_heads * shape.head_dim;
  kvs::TransformLayer layer{.layer = 0,
                            .mean = std::vector<float>(values),
                            .analysis = std::vector<float>(coded * values),
                            .synthesis = std::vector<float>(values * coded),
                            .bits = {},
                            .weights = std::vector<float>(coded, 1),
                            .books = {},
                            .recent = 16,
                            .entropy = std::make_shared<const kvs::EntropyModel>(kvs::laplacian_model())};
  for (std::size_t n = 1; n < layers; ++n) layer.others.push_back(n);
  for (std::size_t n = 0; n < coded; ++n) {
    const double step = 12 * std::exp2(-5.5 * static_cast<double>(n) / static_cast<double>(coded));
    layer.analysis[n * values + n] = static_cast<float>(step);
    layer.synthesis[n * coded + n] = static_cast<float>(1 / step);
    layer.scales.push_back(static_cast<std::uint8_t>(kvs::scale_class(step)));
  }
  return layer;
}

/// States of a block of a group, before and after.
class Block {
 public:
  Block(const kvs::TransformLayer& layer, const kvs::TransformShape& shape)
      : layers_(layer.layers()), values_(2 * shape.kv_heads * shape.head_dim), ops_(1) {
    const std::vector<std::shared_ptr<const kvs::KeyRope>> ropes(
        layers_, std::make_shared<kvs::KeyRope>(std::vector<double>(shape.head_dim / 2, 0.01), 1));
    if (layer.form() == kvs::TransformForm::kStorage)
      codec_ = std::make_unique<kvs::StorageCodec>(ops_, layer, shape, ropes, kvs::StreamId{});
    else
      codec_ = std::make_unique<kvs::RowCodec>(ops_, layer, shape, ropes, kvs::StreamId{});
    const std::vector<float> states = normal_values(layers_ * kTokens * values_, 2, 1);
    states_.resize(states.size());
    read_.resize(states.size());
    std::ranges::transform(states, states_.begin(), kvs::f32_to_f16);
    stream_.resize(codec_->bound(kBlock));
  }

  double bytes() const { return static_cast<double>(states_.size() * sizeof(std::uint16_t)); }
  double rate() const { return static_cast<double>(stream_.size()) / bytes(); }
  void encode() {
    stream_.resize(codec_->bound(kBlock));
    stream_.resize(codec_->encode(ops_, 1, kBlock, {views(states_), nullptr}, stream_));
  }
  void decode() { codec_->decode(ops_, 1, stream_, 0, kTokens, {views(read_), nullptr}); }
  /// Returns the relative error of the states.
  double error() const {
    double error = 0, size = 0;
    for (std::size_t n = 0; n < states_.size(); ++n) {
      const double wanted = static_cast<double>(kvs::f16_to_f32(states_[n])),
                   found = static_cast<double>(kvs::f16_to_f32(read_[n]));
      error += (found - wanted) * (found - wanted);
      size += wanted * wanted;
    }
    return std::sqrt(error / size);
  }

 private:
  static constexpr kvs_codec_block kBlock{
      .layer = 0, .tokens = kTokens, .first_position = 0, .coded_before = 0, .outliers_before = 0};

  std::vector<kvs_codec_states> views(std::vector<std::uint16_t>& of) const {
    const std::size_t head_dim = codec_->group().head_dim;
    std::vector<kvs_codec_states> views;
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      std::uint16_t* const at = of.data() + layer * kTokens * values_;
      views.push_back({.k = at,
                       .v = at + kTokens * values_ / 2,
                       .k_token_stride = values_ / 2,
                       .k_head_stride = head_dim,
                       .v_token_stride = values_ / 2,
                       .v_head_stride = head_dim,
                       .type = KVS_CODEC_F16,
                       .rotated = 1});
    }
    return views;
  }

  std::size_t layers_, values_;
  kvs::CpuCoding ops_;
  std::unique_ptr<kvs::GroupCodec> codec_;
  std::vector<std::uint16_t> states_, read_;
  std::vector<std::byte> stream_;
};

/// @param most  error above which the decoded states are wrong
template <class Work>
void measure(benchmark::State& state, Block block, double most, const Work& work) {
  block.encode();
  block.decode();
  if (const double error = block.error(); !(error < most)) {
    state.SkipWithError("the decoded states are wrong");
    return;
  }
  double best = 1e30;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    work(block);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["GB_per_s"] = block.bytes() / best / 1e9;
  state.counters["rate"] = block.rate();
}

/// @param state  rows (0: layer, 1: head), KV heads, head_dim, bits
template <class Work>
void measure_rows(benchmark::State& state, const Work& work) {
  const kvs::TransformShape shape{static_cast<std::size_t>(state.range(1)), static_cast<std::size_t>(state.range(2))};
  const auto rows = state.range(0) == 0 ? kvs::TransformRows::kLayer : kvs::TransformRows::kHead;
  // Books that are not fitted: about twice the error of those in configs (kTrellisError).
  measure(state, Block(layer_of(rows, shape, static_cast<std::size_t>(state.range(3))), shape),
          2.5 * std::exp2(-static_cast<double>(state.range(3))), work);
}

/// @param state  layers of a group, KV heads, head_dim, percent of the coefficients that are coded
template <class Work>
void measure_storage(benchmark::State& state, const Work& work) {
  const kvs::TransformShape shape{static_cast<std::size_t>(state.range(1)), static_cast<std::size_t>(state.range(2))};
  const auto layers = static_cast<std::size_t>(state.range(0));
  const std::size_t coded =
      layers * 2 * shape.kv_heads * shape.head_dim * static_cast<std::size_t>(state.range(3)) / 100;
  // Values that are not coded keep their whole variance, the others at most 0.7 of it on average.
  measure(state, Block(group_of(layers, shape, coded), shape),
          std::sqrt(1 - 0.3 * static_cast<double>(state.range(3)) / 100), work);
}

void encode_rows(benchmark::State& state) {
  measure_rows(state, [](Block& block) { block.encode(); });
}
void decode_rows(benchmark::State& state) {
  measure_rows(state, [](Block& block) { block.decode(); });
}
void encode_storage(benchmark::State& state) {
  measure_storage(state, [](Block& block) { block.encode(); });
}
void decode_storage(benchmark::State& state) {
  measure_storage(state, [](Block& block) { block.decode(); });
}

void shapes(benchmark::internal::Benchmark* bench) {
  for (const int rows : {0, 1})
    for (const auto& [heads, head_dim] : {std::pair{3, 64}, std::pair{8, 128}})
      for (const int bits : {1, 2, 4}) bench->Args({rows, heads, head_dim, bits});
  bench->ArgNames({"head", "kv_heads", "head_dim", "bits"})->Unit(benchmark::kMillisecond);
}
void groups(benchmark::internal::Benchmark* bench) {
  for (const int percent : {25, 50}) {
    for (const int layers : {1, 2, 6}) bench->Args({layers, 3, 64, percent});
    bench->Args({1, 8, 128, percent});
  }
  bench->ArgNames({"layers", "kv_heads", "head_dim", "coded"})->Unit(benchmark::kMillisecond);
}

BENCHMARK(encode_rows)->Apply(shapes);
BENCHMARK(decode_rows)->Apply(shapes);
BENCHMARK(encode_storage)->Apply(groups);
BENCHMARK(decode_storage)->Apply(groups);

}  // namespace

BENCHMARK_MAIN();
