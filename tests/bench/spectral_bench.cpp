// SPDX-License-Identifier: Apache-2.0
// Power spectra of SmolLM2-135M's keys, one layer, in bytes of f32 states: by transform and tokens. Threads: those of
// OMP_NUM_THREADS.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kernels/cpu/spectral_ops.h"

namespace {

using kvs::Transform;

constexpr std::size_t kHeads = 3, kHeadDim = 64;

std::vector<float> random_states(std::size_t size) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  std::ranges::generate(values, [&] { return normal(generator); });
  return values;
}

void power(benchmark::State& state, Transform transform) {
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const std::vector<float> states = random_states(kHeads * tokens * kHeadDim);
  const auto ops = kvs::make_cpu_spectral_ops();
  std::vector<double> spectrum(kHeads * kvs::bins_of(transform, tokens));
  const std::array shape{kHeads, tokens, kHeadDim};
  for (auto _ : state) ops->power({std::span<const float>(states), shape}, transform, 0, spectrum);
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * states.size() * 4));
  if (transform != Transform::kDct) return;
  double energy = 0, sum = 0;  // Parseval
  for (const float value : states) energy += static_cast<double>(value) * value / kHeadDim;
  for (const double bin : spectrum) sum += bin;
  if (!(std::abs(sum / energy - 1) < 1e-12)) state.SkipWithError("the spectrum has another energy than the states");
}

void lengths(benchmark::internal::Benchmark* benchmark) {
  for (const int tokens : {512, 1000, 1020, 1021, 1024, 2044, 2048, 4093, 4096, 8192, 32749, 32768})
    benchmark->Arg(tokens);
}
BENCHMARK_CAPTURE(power, dct, Transform::kDct)->Apply(lengths);
BENCHMARK_CAPTURE(power, dft, Transform::kDft)->Apply(lengths);

}  // namespace

BENCHMARK_MAIN();
