// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of blocks by the transform codec, on one thread. Prints gigabytes of f16 states a second in
// each direction, by form of rows, shape and bits of a value. Keys come after RoPE.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/dtype.h"
#include "export/codec/layer_codec.h"

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

/// States of a block, before and after.
class Block {
 public:
  Block(kvs::TransformRows rows, const kvs::TransformShape& shape, std::size_t bits)
      : values_(2 * shape.kv_heads * shape.head_dim),
        ops_(1),
        codec_(ops_, layer_of(rows, shape, bits), shape,
               std::make_shared<kvs::KeyRope>(std::vector<double>(shape.head_dim / 2, 0.01), 1), {}),
        states_(kTokens * values_),
        read_(states_.size()) {
    const std::vector<float> states = normal_values(states_.size(), 2, 1);
    for (std::size_t n = 0; n < states_.size(); ++n) states_[n] = kvs::f32_to_f16(states[n]);
    stream_.resize(codec_.bound(kBlock));
  }

  double bytes() const { return static_cast<double>(states_.size() * sizeof(std::uint16_t)); }
  double rate() const { return static_cast<double>(stream_.size()) / bytes(); }
  void encode() { stream_.resize(codec_.encode(ops_, 1, kBlock, views(states_), stream_)); }
  void decode() { codec_.decode(ops_, 1, stream_, 0, kTokens, views(read_)); }
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

  kvs_codec_states views(std::vector<std::uint16_t>& of) const {
    const std::size_t head_dim = codec_.layout().head_dim;
    return {.k = of.data(),
            .v = of.data() + kTokens * values_ / 2,
            .k_token_stride = values_ / 2,
            .k_head_stride = head_dim,
            .v_token_stride = values_ / 2,
            .v_head_stride = head_dim,
            .type = KVS_CODEC_F16,
            .rotated = 1};
  }

  std::size_t values_;
  kvs::CpuCoding ops_;
  kvs::LayerCodec codec_;
  std::vector<std::uint16_t> states_, read_;
  std::vector<std::byte> stream_;
};

/// @param state  rows (0: layer, 1: head), KV heads, head_dim, bits
template <class Work>
void measure(benchmark::State& state, Work work) {
  Block block(state.range(0) == 0 ? kvs::TransformRows::kLayer : kvs::TransformRows::kHead,
              {static_cast<std::size_t>(state.range(1)), static_cast<std::size_t>(state.range(2))},
              static_cast<std::size_t>(state.range(3)));
  block.encode();
  block.decode();
  // Books that are not fitted: about twice the error of those in configs (kTrellisError).
  if (const double error = block.error(); !(error < 2.5 * std::exp2(-static_cast<double>(state.range(3))))) {
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

void encode(benchmark::State& state) {
  measure(state, [](Block& block) { block.encode(); });
}
void decode(benchmark::State& state) {
  measure(state, [](Block& block) { block.decode(); });
}

void shapes(benchmark::internal::Benchmark* bench) {
  for (const int rows : {0, 1})
    for (const auto& [heads, head_dim] : {std::pair{3, 64}, std::pair{8, 128}})
      for (const int bits : {1, 2, 4}) bench->Args({rows, heads, head_dim, bits});
  bench->ArgNames({"head", "kv_heads", "head_dim", "bits"})->Unit(benchmark::kMillisecond);
}

BENCHMARK(encode)->Apply(shapes);
BENCHMARK(decode)->Apply(shapes);

}  // namespace

BENCHMARK_MAIN();
