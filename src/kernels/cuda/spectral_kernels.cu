// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/spectral_kernels.h"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {
namespace {

/// Segment as passed to kernels.
struct Layout {
  std::size_t heads, tokens, head_dim, first, samples, pairs, signals;
  bool dct;

  explicit Layout(const Segment& s)
      : heads(s.heads),
        tokens(s.tokens),
        head_dim(s.head_dim),
        first(s.first),
        samples(s.samples),
        pairs(s.pairs()),
        signals(s.signals()),
        dct(s.transform == Transform::kDct) {}

  /// Returns the index of sample n in the signals.
  __device__ std::size_t place_of(std::size_t n) const {
    if (!dct) return n;
    return n % 2 == 0 ? n / 2 : samples - 1 - n / 2;
  }
  __device__ std::size_t signal(std::size_t sample, std::size_t head, std::size_t pair) const {
    return sample * signals + head * pairs + pair;
  }
  /// Returns the index in states of the first of a signal's two channels at `token`.
  __device__ std::size_t channel_of(unsigned signal, std::size_t token) const {
    const unsigned of_head = static_cast<unsigned>(pairs), head = signal / of_head, pair = signal % of_head;
    return (head * tokens + token) * head_dim + std::size_t{2} * pair;
  }
  /// Returns the index in a spectrum of the real part of bin n, of `count` bins.
  __device__ std::size_t part_of(unsigned signal, std::size_t n, std::size_t count) const {
    const unsigned of_head = static_cast<unsigned>(pairs), head = signal / of_head, pair = signal % of_head;
    return (head * count + n) * 2 * head_dim + std::size_t{2} * pair;
  }
  /// Returns true if a signal has two channels.
  __device__ bool has_second(unsigned signal) const {
    return head_dim % 2 == 0 || (signal + 1) % static_cast<unsigned>(pairs) != 0;
  }
};

// Kernels that move all values handle one sample, token or bin per blockIdx.x, so that a thread needs at most one
// 32-bit division for the 24 bytes that it moves.

/// Returns a thread's signal, if it is below the layout's number of signals.
__device__ unsigned own_signal() { return blockIdx.y * blockDim.x + threadIdx.x; }

/// e^{jπk/N}
__device__ cuDoubleComplex half_turn(std::size_t k, std::size_t samples) {
  double sine, cosine;
  sincospi(static_cast<double>(k) / static_cast<double>(samples), &sine, &cosine);
  return {cosine, sine};
}

__device__ double norm(cuDoubleComplex z) { return z.x * z.x + z.y * z.y; }

/// N: values read at once. With 2, rows are aligned to 2 values; with 1, a head's last signal may have one channel.
template <int N>
__global__ void load_pairs(const float* __restrict__ states, Layout at, cuDoubleComplex* __restrict__ signals) {
  const unsigned signal = own_signal();
  if (signal >= at.signals) return;
  const float* const from = states + at.channel_of(signal, at.first + blockIdx.x);
  cuDoubleComplex both;
  if constexpr (N == 2) {
    const Values<2> values = load<2>(from);
    both = {values.at[0], values.at[1]};
  } else {
    both = {from[0], at.has_second(signal) ? from[1] : 0.0F};
  }
  signals[at.place_of(blockIdx.x) * at.signals + signal] = both;
}

/// One warp per bin and head. A pair's DCT power at k is |e^{−jπk/N} Z[k] + Z[N−k]|²/4. Its DFT power is the mean of
/// |Z[k]|² and |Z[N−k]|² (both channels together). The orthonormal scale 1/N or 2/N and the mean over channels are
/// applied afterwards.
__global__ void reduce_bins(const cuDoubleComplex* z, std::size_t bins, Layout at, double* power) {
  const std::size_t task = global_index() / 32, lane = threadIdx.x % 32;
  if (task >= bins * at.heads) return;  // a whole warp returns
  const std::size_t k = task / at.heads, head = task % at.heads, mirror = k == 0 ? 0 : at.samples - k;
  cuDoubleComplex turn = half_turn(k, at.samples);
  turn.y = -turn.y;
  double sum = 0;
  for (std::size_t pair = lane; pair < at.pairs; pair += 32) {
    const cuDoubleComplex low = z[at.signal(k, head, pair)], high = z[at.signal(mirror, head, pair)];
    if (k == 0)
      sum += norm(low);
    else if (at.dct)
      sum += norm(cuCadd(cuCmul(turn, low), high)) / 2;
    else
      sum += (norm(low) + norm(high)) / 2;
  }
  sum = warp_sum(sum);
  if (lane == 0) power[head * bins + k] = sum / (static_cast<double>(at.samples) * static_cast<double>(at.head_dim));
}

/// Applied to the reordered signal's FFT, a DCT gain is Z'[k] = (g[k] + g[N−k])/2 · Z[k] + (g[k] − g[N−k])/2 ·
/// e^{jπk/N} Z[N−k], and Z'[0] = g[0] Z[0]. A thread handles every (gridDim.y · blockDim.x)-th signal of bin
/// blockIdx.x.
__global__ void multiply_bins(const cuDoubleComplex* __restrict__ z, const double* __restrict__ gain, Layout at,
                              cuDoubleComplex* __restrict__ out) {
  const std::size_t k = blockIdx.x, mirror = k == 0 ? 0 : at.samples - k;
  const cuDoubleComplex* const low = z + k * at.signals;
  cuDoubleComplex* const to = out + k * at.signals;
  const unsigned step = gridDim.y * blockDim.x;
  if (!at.dct || k == 0) {
    const double g = gain[k < mirror ? k : mirror];
    for (unsigned i = own_signal(); i < at.signals; i += step) to[i] = {low[i].x * g, low[i].y * g};
    return;
  }
  const double sum = (gain[k] + gain[mirror]) / 2, difference = (gain[k] - gain[mirror]) / 2;
  const cuDoubleComplex turn = half_turn(k, at.samples);
  const cuDoubleComplex* const high = z + mirror * at.signals;
  for (unsigned i = own_signal(); i < at.signals; i += step) {
    const cuDoubleComplex turned = cuCmul(turn, high[i]);
    to[i] = {sum * low[i].x + difference * turned.x, sum * low[i].y + difference * turned.y};
  }
}

/// N as in load_pairs. `from` and `to` may be equal.
template <int N>
__global__ void store_pairs(const cuDoubleComplex* __restrict__ signals, Layout at, const float* from, float* to) {
  const unsigned signal = own_signal();
  if (signal >= at.signals) return;
  const std::size_t token = blockIdx.x, first = at.channel_of(signal, token);
  const bool second = N == 2 || at.has_second(signal);
  Values<2> values{};
  if (token >= at.first && token < at.first + at.samples) {
    const cuDoubleComplex z = signals[at.place_of(token - at.first) * at.signals + signal];
    const auto samples = static_cast<double>(at.samples);
    values = {static_cast<float>(z.x / samples), static_cast<float>(z.y / samples)};
  } else if constexpr (N == 2) {
    values = load<2>(from + first);
  } else {
    values = {from[first], second ? from[first + 1] : 0.0F};
  }
  if constexpr (N == 2) return store(to + first, values);
  to[first] = values.at[0];
  if (second) to[first + 1] = values.at[1];
}

/// The two channels of one signal at one bin. In the transform z of a + jb, the bin holds A + jB, and its mirror image
/// holds conj A + j conj B.
struct PairOfBins {
  cuDoubleComplex first{}, second{};

  __device__ PairOfBins() = default;
  __device__ PairOfBins(cuDoubleComplex low, cuDoubleComplex high)
      : first{(low.x + high.x) / 2, (low.y - high.y) / 2}, second{(low.y + high.y) / 2, (high.x - low.x) / 2} {}
  __device__ cuDoubleComplex low() const { return {first.x - second.y, first.y + second.x}; }
  __device__ cuDoubleComplex high() const { return {first.x + second.y, second.x - first.y}; }
};

/// blockIdx.x is the bin, here and in the next two kernels.
__global__ void pick_pairs(const cuDoubleComplex* z, Layout at, Bins bins, float* spectrum) {
  const unsigned signal = own_signal();
  if (signal >= at.signals) return;
  const std::size_t k = bins.bins[blockIdx.x], mirror = k == 0 ? 0 : bins.samples - k;
  const PairOfBins pair(z[k * at.signals + signal], z[mirror * at.signals + signal]);
  float* const real = spectrum + at.part_of(signal, blockIdx.x, bins.count);
  real[0] = static_cast<float>(pair.first.x);
  real[at.head_dim] = static_cast<float>(pair.first.y);
  if (!at.has_second(signal)) return;
  real[1] = static_cast<float>(pair.second.x);
  real[at.head_dim + 1] = static_cast<float>(pair.second.y);
}

__global__ void place_pairs(const float* spectrum, Layout at, Bins bins, cuDoubleComplex* z) {
  const unsigned signal = own_signal();
  if (signal >= at.signals) return;
  const std::size_t k = bins.bins[blockIdx.x], mirror = k == 0 ? 0 : bins.samples - k;
  const float* const real = spectrum + at.part_of(signal, blockIdx.x, bins.count);
  PairOfBins pair;
  pair.first = {real[0], real[at.head_dim]};
  if (at.has_second(signal)) pair.second = {real[1], real[at.head_dim + 1]};
  if (mirror == k) pair.first.y = pair.second.y = 0;  // real, because the signal is real
  z[k * at.signals + signal] = pair.low();
  if (mirror != k) z[mirror * at.signals + signal] = pair.high();
}

__global__ void add_turned(const float* x, Layout at, Bins bins, std::size_t token, std::size_t place,
                           float* spectrum) {
  const std::size_t channel = std::size_t{blockIdx.y} * blockDim.x + threadIdx.x, head = channel / at.head_dim;
  if (head >= at.heads) return;
  const std::size_t turns = bins.bins[blockIdx.x] * place % bins.samples;
  double sine, cosine;
  sincospi(-2 * static_cast<double>(turns) / static_cast<double>(bins.samples), &sine, &cosine);
  const float value = x[(head * at.tokens + token) * at.head_dim + channel % at.head_dim];
  float* const real = spectrum + (head * bins.count + blockIdx.x) * 2 * at.head_dim + channel % at.head_dim;
  real[0] += value * static_cast<float>(cosine);
  real[at.head_dim] += value * static_cast<float>(sine);
}

/// Returns blocks for every signal of each of `outer` samples, tokens or bins. A thread handles `share` signals.
Grid grid_of(const Segment& segment, std::size_t outer, std::size_t share) {
  constexpr std::size_t kWarp = 32;
  require(outer < 0x80000000, "a spectral transform", "fewer than 2^31 tokens");
  const std::size_t signals = (segment.signals() + share - 1) / share;
  const std::size_t threads = std::min<std::size_t>(kThreads, (signals + kWarp - 1) / kWarp * kWarp);
  const dim3 blocks(static_cast<unsigned>(outer), grid_rows(blocks_for(signals), "a spectral transform"));
  return {blocks, static_cast<unsigned>(threads)};
}

}  // namespace

void load_signals(const Context& context, const Segment& segment, const float* states, cuDoubleComplex* signals) {
  with_values<2>(
      segment.head_dim,
      [&](auto n) {
        launch_kernel("load_pairs", load_pairs<n()>, grid_of(segment, segment.samples, 1), context.stream(), states,
                      Layout(segment), signals);
      },
      states);
}

void reduce_power(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, double* power) {
  const std::size_t bins = bins_of(segment.transform, segment.samples);
  launch_kernel("reduce_bins", reduce_bins, {blocks_for(bins * segment.heads * 32)}, context.stream(), spectrum, bins,
                Layout(segment), power);
}

void apply_gain(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, const double* gain,
                cuDoubleComplex* out) {
  constexpr std::size_t kShare = 8;  // signals per sine and cosine
  launch_kernel("multiply_bins", multiply_bins, grid_of(segment, segment.samples, kShare), context.stream(), spectrum,
                gain, Layout(segment), out);
}

void store_signals(const Context& context, const Segment& segment, const cuDoubleComplex* signals, const float* from,
                   float* to) {
  with_values<2>(
      segment.head_dim,
      [&](auto n) {
        launch_kernel("store_pairs", store_pairs<n()>, grid_of(segment, segment.tokens, 1), context.stream(), signals,
                      Layout(segment), from, to);
      },
      from, static_cast<const float*>(to));
}

void pick_bins(const Context& context, const Segment& segment, const Bins& bins, const cuDoubleComplex* transform,
               float* spectrum) {
  launch_kernel("pick_pairs", pick_pairs, grid_of(segment, bins.count, 1), context.stream(), transform, Layout(segment),
                bins, spectrum);
}

void place_bins(const Context& context, const Segment& segment, const Bins& bins, const float* spectrum,
                cuDoubleComplex* transform) {
  launch_kernel("place_pairs", place_pairs, grid_of(segment, bins.count, 1), context.stream(), spectrum,
                Layout(segment), bins, transform);
}

void add_sample(const Context& context, const Segment& segment, const Bins& bins, const float* x, std::size_t token,
                std::size_t place, float* spectrum) {
  const dim3 blocks(static_cast<unsigned>(bins.count),
                    grid_rows(blocks_for(segment.heads * segment.head_dim), "a spectral transform"));
  launch_kernel("add_turned", add_turned, {blocks}, context.stream(), x, Layout(segment), bins, token, place, spectrum);
}

}  // namespace kvs::cuda
