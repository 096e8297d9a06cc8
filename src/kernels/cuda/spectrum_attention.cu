// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/spectrum_attention.h"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {
namespace {

/// BinnedStates as passed to kernels.
struct HeldBins {
  const float* sums;
  const std::uint32_t* numbers;
  std::size_t count;

  explicit HeldBins(const BinnedStates& states)
      : sums(states.sums.data()), numbers(states.grid.bins.data()), count(states.bins()) {}
};

/// AttentionInput and KeySpectrum as passed to kernels. A query is (head, token), with heads outermost, as in q.
struct Layout {
  const float *q, *k, *v, *past_k, *past_v;
  HeldBins spectrum_k, spectrum_v;
  std::size_t query_heads, kv_heads, tokens, head_dim, past, past_stride, samples, spectrum_tokens;
  float scale, softcap;

  Layout(const AttentionInput& in, const KeySpectrum& spectrum)
      : q(in.q.data()),
        k(in.k.data()),
        v(in.v.data()),
        past_k(static_cast<const float*>(in.past.k.data)),
        past_v(static_cast<const float*>(in.past.v.data)),
        spectrum_k(spectrum.k),
        spectrum_v(spectrum.v),
        query_heads(in.q.extent(1)),
        kv_heads(in.k.extent(1)),
        tokens(in.q.extent(2)),
        head_dim(in.q.extent(3)),
        past(in.past.count()),
        past_stride(in.past.k.shape[2]),
        samples(spectrum.samples()),
        spectrum_tokens(spectrum.tokens),
        scale(in.scale),
        softcap(in.softcap) {}

  __host__ __device__ std::size_t queries() const { return query_heads * tokens; }
  __host__ __device__ std::size_t rows() const { return past + tokens; }
  __device__ std::size_t kv_head(std::size_t query) const { return query / tokens / (query_heads / kv_heads); }
  /// Returns row `row` of a KV head: rows of the past first, then rows of the tokens.
  __device__ const float* row_of(const float* of_past, const float* own, std::size_t head, std::size_t row) const {
    return row < past ? of_past + (head * past_stride + row) * head_dim : own + (head * tokens + row - past) * head_dim;
  }
  __device__ const float* bin_of(const HeldBins& bins, std::size_t head, std::size_t n) const {
    return bins.sums + (head * bins.count + n) * 2 * head_dim;
  }
  /// Returns the weight of a bin in an inverse transform, including its mirror image.
  __device__ double share(std::size_t bin) const {
    const bool own_mirror = bin == 0 || 2 * bin == samples;
    return (own_mirror ? 1.0 : 2.0) / static_cast<double>(samples);
  }
  __device__ float score(float product) const {
    const float scaled = scale * product;
    return softcap > 0 ? softcap * tanhf(scaled / softcap) : scaled;
  }
};

/// Computes the dot product of two rows with one warp.
__device__ float dot(const float* a, const float* b, std::size_t count) {
  float sum = 0;
  for (std::size_t d = threadIdx.x % 32; d < count; d += 32) sum += a[d] * b[d];
  return warp_sum(sum);
}

/// One warp per bin; blockIdx.y is the query. The other bins are already 0.
__global__ void multiply_bins(Layout in, cuDoubleComplex* signals) {
  const std::size_t n = global_index() / 32, query = blockIdx.y;
  if (n >= in.spectrum_k.count) return;  // a whole warp returns
  const std::size_t bin = in.spectrum_k.numbers[n];
  const float* const q = in.q + query * in.head_dim;
  const float* const k = in.bin_of(in.spectrum_k, in.kv_head(query), n);
  const double real = dot(q, k, in.head_dim), imaginary = dot(q, k + in.head_dim, in.head_dim), share = in.share(bin);
  if (threadIdx.x % 32 == 0) signals[bin * in.queries() + query] = {share * real, share * imaginary};
}

/// One warp per row; blockIdx.y is the query.
__global__ void score_rows(Layout in, float* scores) {
  const std::size_t row = global_index() / 32, query = blockIdx.y;
  if (row >= in.rows()) return;  // a whole warp returns
  const bool later = row > in.past + query % in.tokens;
  const float* const k = in.row_of(in.past_k, in.k, in.kv_head(query), row);
  const float product = dot(in.q + query * in.head_dim, k, in.head_dim);
  if (threadIdx.x % 32 == 0) scores[query * in.rows() + row] = later ? -INFINITY : in.score(product);
}

/// One block per query: converts its scores, of samples and rows, to weights that sum to 1.
__global__ void weigh(Layout in, cuDoubleComplex* signals, float* scores) {
  __shared__ float maxima[kThreads / 32];
  __shared__ double sums[kThreads / 32];
  cuDoubleComplex* const signal = signals + blockIdx.x;
  float* const row_scores = scores + blockIdx.x * in.rows();
  const std::size_t queries = in.queries();
  const auto sample = [&](std::size_t n) { return in.score(static_cast<float>(signal[n * queries].x)); };
  float largest = -INFINITY;
  for (std::size_t n = threadIdx.x; n < in.spectrum_tokens; n += blockDim.x) largest = fmaxf(largest, sample(n));
  for (std::size_t row = threadIdx.x; row < in.rows(); row += blockDim.x) largest = fmaxf(largest, row_scores[row]);
  largest = block_max(largest, maxima);
  double sum = 0;
  for (std::size_t n = threadIdx.x; n < in.spectrum_tokens; n += blockDim.x) sum += expf(sample(n) - largest);
  for (std::size_t row = threadIdx.x; row < in.rows(); row += blockDim.x) sum += expf(row_scores[row] - largest);
  sum = block_sum(sum, sums);
  for (std::size_t n = threadIdx.x; n < in.samples; n += blockDim.x)
    signal[n * queries] = {n < in.spectrum_tokens ? expf(sample(n) - largest) / sum : 0, 0};
  for (std::size_t row = threadIdx.x; row < in.rows(); row += blockDim.x)
    row_scores[row] = static_cast<float>(expf(row_scores[row] - largest) / sum);
}

/// One block per 32 channels of a query; each warp handles every eighth bin and row; blockIdx.y is the query.
template <class T>
__global__ void mix_values(Layout in, const cuDoubleComplex* signals, const float* weights, T* out) {
  constexpr std::size_t kWarps = kThreads / 32;
  __shared__ float parts[kWarps][32];
  const std::size_t query = blockIdx.y, head = in.kv_head(query), warp = threadIdx.x / 32, lane = threadIdx.x % 32,
                    channel = std::size_t{blockIdx.x} * 32 + lane;
  float sum = 0;
  if (channel < in.head_dim) {
    for (std::size_t n = warp; n < in.spectrum_v.count; n += kWarps) {
      const std::size_t bin = in.spectrum_v.numbers[n];
      const cuDoubleComplex w = signals[bin * in.queries() + query];
      const float* const v = in.bin_of(in.spectrum_v, head, n) + channel;
      sum += static_cast<float>(in.share(bin) * (w.x * v[0] + w.y * v[in.head_dim]));
    }
    for (std::size_t row = warp; row < in.rows(); row += kWarps)
      sum += weights[query * in.rows() + row] * in.row_of(in.past_v, in.v, head, row)[channel];
  }
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || channel >= in.head_dim) return;
  for (std::size_t other = 1; other < kWarps; ++other) sum += parts[other][lane];
  const std::size_t query_head = query / in.tokens, token = query % in.tokens;
  round_to(out + (token * in.query_heads + query_head) * in.head_dim + channel, sum);
}

}  // namespace

void SpectrumAttention::run(const AttentionInput& in, const KeySpectrum& spectrum, DType type, const Operand& out) {
  const Layout layout(in, spectrum);
  const std::size_t queries = layout.queries(), values = layout.samples * queries;
  signals_.reserve(context_, values);
  scores_.reserve(context_, queries * layout.rows());
  context_.clear(signals_.data(), values * sizeof(cuDoubleComplex));
  const unsigned per_query = grid_rows(queries, "attention");
  const auto warps = [&](std::size_t count) { return Grid{dim3(blocks_for(count * 32), per_query)}; };
  launch_kernel("multiply_bins", multiply_bins, warps(layout.spectrum_k.count), context_.stream(), layout,
                signals_.data());
  plans_.run(signals_.data(), layout.samples, queries, CUFFT_INVERSE);
  launch_kernel("score_rows", score_rows, warps(layout.rows()), context_.stream(), layout, scores_.data());
  launch_kernel("weigh", weigh, {per_query}, context_.stream(), layout, signals_.data(), scores_.data());
  plans_.run(signals_.data(), layout.samples, queries, CUFFT_FORWARD);
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const Grid grid{dim3(static_cast<unsigned>((layout.head_dim + 31) / 32), per_query)};
    launch_kernel("mix_values", mix_values<T>, grid, context_.stream(), layout, signals_.data(), scores_.data(),
                  static_cast<T*>(out.data));
  });
}

}  // namespace kvs::cuda
