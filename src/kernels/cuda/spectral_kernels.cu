#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/spectral_kernels.h"

namespace kvs::cuda {
namespace {

/// Segment as kernels see it.
struct Layout {
  std::size_t heads, tokens, head_dim, first, samples, pairs;
  bool dct;

  explicit Layout(const Segment& s)
      : heads(s.heads),
        tokens(s.tokens),
        head_dim(s.head_dim),
        first(s.first),
        samples(s.samples),
        pairs(s.pairs()),
        dct(s.transform == Transform::kDct) {}

  /// Where sample n stands among the signals.
  __device__ std::size_t place_of(std::size_t n) const {
    if (!dct) return n;
    return n % 2 == 0 ? n / 2 : samples - 1 - n / 2;
  }
  __device__ std::size_t signal(std::size_t sample, std::size_t head, std::size_t pair) const {
    return (sample * heads + head) * pairs + pair;
  }
};

/// e^{jπk/N}
__device__ cuDoubleComplex half_turn(std::size_t k, std::size_t samples) {
  double sine, cosine;
  sincospi(static_cast<double>(k) / static_cast<double>(samples), &sine, &cosine);
  return {cosine, sine};
}

__device__ double norm(cuDoubleComplex z) { return z.x * z.x + z.y * z.y; }

__global__ void load_pairs(const float* states, std::size_t count, Layout at, cuDoubleComplex* signals) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t pair = i % at.pairs, n = i / at.pairs % at.samples, head = i / at.pairs / at.samples;
  const float* const row = states + (head * at.tokens + at.first + n) * at.head_dim + 2 * pair;
  const bool both = 2 * pair + 1 < at.head_dim;
  signals[at.signal(at.place_of(n), head, pair)] = {row[0], both ? row[1] : 0.0F};
}

/// One warp per bin and head. A pair's DCT power at k is |e^{−jπk/N} Z[k] + Z[N−k]|²/4, its DFT power the mean of
/// |Z[k]|² and |Z[N−k]|² (both channels together); the orthonormal scale 1/N, or 2/N, and the mean over channels
/// follow.
__global__ void reduce_bins(const cuDoubleComplex* z, std::size_t bins, Layout at, double* power) {
  const std::size_t task = global_index() / 32, lane = threadIdx.x % 32;
  if (task >= bins * at.heads) return;  // a whole warp
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

/// In terms of the reordered signal's FFT a DCT gain is
/// Z'[k] = (g[k] + g[N−k])/2 · Z[k] + (g[k] − g[N−k])/2 · e^{jπk/N} Z[N−k], and Z'[0] = g[0] Z[0].
__global__ void multiply_bins(const cuDoubleComplex* z, std::size_t count, const double* gain, Layout at,
                              cuDoubleComplex* out) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t signals = at.heads * at.pairs, k = i / signals, mirror = k == 0 ? 0 : at.samples - k;
  if (!at.dct || k == 0) {
    const double g = gain[k < mirror ? k : mirror];
    out[i] = {z[i].x * g, z[i].y * g};
    return;
  }
  const double sum = (gain[k] + gain[mirror]) / 2, difference = (gain[k] - gain[mirror]) / 2;
  const cuDoubleComplex turned = cuCmul(half_turn(k, at.samples), z[mirror * signals + i % signals]);
  out[i] = {sum * z[i].x + difference * turned.x, sum * z[i].y + difference * turned.y};
}

__global__ void store_pairs(const cuDoubleComplex* signals, std::size_t count, Layout at, const float* from,
                            float* to) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t channel = i % at.head_dim, token = i / at.head_dim % at.tokens, head = i / at.head_dim / at.tokens;
  if (token < at.first || token >= at.first + at.samples) {
    to[i] = from[i];
    return;
  }
  const cuDoubleComplex z = signals[at.signal(at.place_of(token - at.first), head, channel / 2)];
  to[i] = static_cast<float>((channel % 2 == 0 ? z.x : z.y) / static_cast<double>(at.samples));
}

}  // namespace

void load_signals(const Context& context, const Segment& segment, const float* states, cuDoubleComplex* signals) {
  const std::size_t count = segment.samples * segment.signals();
  launch_kernel("load_pairs", load_pairs, {blocks_for(count)}, context.stream(), states, count, Layout(segment),
                signals);
}

void reduce_power(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, double* power) {
  const std::size_t bins = bins_of(segment.transform, segment.samples);
  launch_kernel("reduce_bins", reduce_bins, {blocks_for(bins * segment.heads * 32)}, context.stream(), spectrum, bins,
                Layout(segment), power);
}

void apply_gain(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, const double* gain,
                cuDoubleComplex* out) {
  const std::size_t count = segment.samples * segment.signals();
  launch_kernel("multiply_bins", multiply_bins, {blocks_for(count)}, context.stream(), spectrum, count, gain,
                Layout(segment), out);
}

void store_signals(const Context& context, const Segment& segment, const cuDoubleComplex* signals, const float* from,
                   float* to) {
  const std::size_t count = segment.heads * segment.tokens * segment.head_dim;
  launch_kernel("store_pairs", store_pairs, {blocks_for(count)}, context.stream(), signals, count, Layout(segment),
                from, to);
}

}  // namespace kvs::cuda
