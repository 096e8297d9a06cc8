// SPDX-License-Identifier: Apache-2.0
// RoPElite's sums over pairs of tokens at SmolLM2-135M's shape, one layer. ms_per_token is for all 30 layers in the
// fastest iteration. The Gram sums are a constant (linear in tokens). The first-power distances grow with the tokens.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kernels/cpu/calibration_ops.h"

namespace {

using kvs::BackendView;
using kvs::RopeTable;
using kvs::TensorView;

constexpr std::size_t kLayers = 30, kQueryHeads = 9, kKvHeads = 3, kHeadDim = 64, kChunks = kHeadDim / 2;

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  std::ranges::generate(values, [&] { return normal(generator); });
  return values;
}

struct Layer {
  explicit Layer(std::size_t count)
      : tokens(count),
        q(random_values(kQueryHeads * count * kHeadDim, 1)),
        k(random_values(kKvHeads * count * kHeadDim, 2)),
        cosine(random_values(count * kChunks, 3)),
        sine(random_values(count * kChunks, 4)) {}

  BackendView<const float, 3> queries() const { return {std::span<const float>(q), {kQueryHeads, tokens, kHeadDim}}; }
  BackendView<const float, 3> keys() const { return {std::span<const float>(k), {kKvHeads, tokens, kHeadDim}}; }
  RopeTable table() const {
    const std::array shape{tokens, kChunks};
    return {{std::span<const float>(cosine), shape}, {std::span<const float>(sine), shape}};
  }
  std::size_t tokens;
  std::vector<float> q, k, cosine, sine;
};

template <class Work>
void per_token(benchmark::State& state, std::size_t tokens, Work&& work) {
  double best = 1e30;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["ms_per_token"] = best * 1e3 * kLayers / static_cast<double>(tokens);
}

/// Σ_{i ≥ j} |Σ_c δ_c|^power over the chunks other than `rotated` (no chunk is rotated if it is kChunks), by its
/// definition.
double score_error(const Layer& layer, std::size_t head, std::size_t rotated_chunk, double power) {
  const RopeTable table = layer.table();
  const auto rotated = [&](const float* x, std::size_t token) {
    std::array<double, kHeadDim> out;
    for (std::size_t c = 0; c < kChunks; ++c) {
      const double cos = table.cosine.data()[token * kChunks + c], sin = table.sine.data()[token * kChunks + c];
      out[c] = x[c] * cos - x[c + kChunks] * sin;
      out[c + kChunks] = x[c + kChunks] * cos + x[c] * sin;
    }
    return out;
  };
  double sum = 0;
  for (std::size_t i = 0; i < layer.tokens; ++i) {
    const float* q = layer.q.data() + (head * layer.tokens + i) * kHeadDim;
    const auto a = rotated(q, i);
    for (std::size_t j = 0; j <= i; ++j) {
      const float* k = layer.k.data() + (head / (kQueryHeads / kKvHeads) * layer.tokens + j) * kHeadDim;
      const auto b = rotated(k, j);
      double difference = 0;
      for (std::size_t c = 0; c < kHeadDim; ++c)
        if (c % kChunks != rotated_chunk) difference += a[c] * b[c] - double{q[c]} * k[c];
      sum += std::pow(std::abs(difference), power);
    }
  }
  return sum;
}

void rope_gram(benchmark::State& state) {
  const Layer layer(static_cast<std::size_t>(state.range(0)));
  const auto ops = kvs::make_cpu_calibration_ops(kvs::DType::kF32);
  std::vector<double> gram(kQueryHeads * kChunks * kChunks);
  per_token(state, layer.tokens, [&] {
    std::ranges::fill(gram, 0.0);
    const auto grams = ops->rope_grams(TensorView<double, 4>(gram, {1, kQueryHeads, kChunks, kChunks}));
    grams->add(0, layer.queries(), layer.keys(), layer.table(), 0);
    grams->finish();
  });
  double sum = 0;
  for (std::size_t i = 0; i < kChunks * kChunks; ++i) sum += gram[(kQueryHeads - 1) * kChunks * kChunks + i];
  const double expected = score_error(layer, kQueryHeads - 1, kChunks, 2);
  if (!(std::abs(sum - expected) < 1e-10 * expected)) state.SkipWithError("the Gram matrix is wrong");
}
BENCHMARK(rope_gram)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond)->UseRealTime();

void rope_distance(benchmark::State& state) {
  const Layer layer(static_cast<std::size_t>(state.range(0)));
  const auto ops = kvs::make_cpu_calibration_ops(kvs::DType::kF32);
  const std::array shape{kQueryHeads, kChunks};
  const std::vector<std::uint8_t> rotated(kQueryHeads * kChunks, 0);
  std::vector<double> errors(kQueryHeads * kChunks);
  per_token(state, layer.tokens, [&] {
    std::ranges::fill(errors, 0.0);
    ops->accumulate_rope_distance(layer.queries(), layer.keys(), layer.table(), 0,
                                  TensorView<const std::uint8_t, 2>(rotated, shape),
                                  TensorView<double, 2>(errors, shape));
  });
  const double expected = score_error(layer, kQueryHeads - 1, 5, 1);
  const double error = errors[(kQueryHeads - 1) * kChunks + 5];
  if (!(std::abs(error - expected) < 1e-10 * expected)) state.SkipWithError("the distance is wrong");
}
BENCHMARK(rope_distance)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
