// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/spectrum_attention.h"

#include <omp.h>

#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::cpu {
namespace {

constexpr std::size_t kChannelBlock = 16;  // one cache line

constexpr std::size_t padded(std::size_t count) { return (count + kSumLanes - 1) / kSumLanes * kSumLanes; }

/// Returns the floats per thread.
std::size_t stride_of(const KeySpectrum& spectrum) { return padded(RealFft::buffer_size(spectrum.samples())); }

struct Shape {
  Shape(const AttentionInput& in, const KeySpectrum& spectrum)
      : head_dim(in.q.extent(3)),
        pairs(in.k.extent(1)),
        rows(in.q.extent(1) / pairs * in.q.extent(2)),
        samples(spectrum.samples()),
        tokens(spectrum.tokens),
        stride(stride_of(spectrum)) {}

  /// Returns the keys or values of a pair (a KV head).
  const float* of_pair(const BinnedStates& states, std::size_t pair) const {
    return states.sums.data() + pair * states.bins() * 2 * head_dim;
  }

  std::size_t head_dim, pairs, rows, samples, tokens;
  std::size_t stride;
};

/// signal[bins[n]] = Σ_d q_d K_d[n] / samples
void multiply_keys(const BinGrid& grid, const float* k, const float* q, std::size_t head_dim, float* signal) {
  const float factor = 1.0F / static_cast<float>(grid.samples);
  for (std::size_t n = 0; n < grid.bins.size(); ++n, k += 2 * head_dim) {
    float real = 0, imaginary = 0;
#pragma omp simd reduction(+ : real, imaginary)
    for (std::size_t d = 0; d < head_dim; ++d) {
      real += q[d] * k[d];
      imaginary += q[d] * k[head_dim + d];
    }
    float* const bin = signal + std::size_t{2} * grid.bins.data()[n];
    bin[0] = factor * real;
    bin[1] = factor * imaginary;
  }
}

/// mix[d] = Σ_n Re(V_d[n] · conj signal[bins[n]]) / samples, including mirror images, for up to kChannelBlock channels.
void mix_values(const BinGrid& grid, const float* v, const float* signal, std::size_t head_dim, std::size_t channels,
                float* mix) {
  float sums[kChannelBlock] = {};
  for (std::size_t n = 0; n < grid.bins.size(); ++n, v += 2 * head_dim) {
    const std::size_t bin = grid.bins.data()[n];
    const bool own_mirror = bin == 0 || 2 * bin == grid.samples;
    const float weight = own_mirror ? 1.0F : 2.0F, real = weight * signal[2 * bin],
                imaginary = weight * signal[2 * bin + 1];
#pragma omp simd
    for (std::size_t d = 0; d < channels; ++d) sums[d] += real * v[d] + imaginary * v[head_dim + d];
  }
  for (std::size_t d = 0; d < channels; ++d) mix[d] = sums[d] / static_cast<float>(grid.samples);
}

}  // namespace

void SpectrumAttention::prepare(const KeySpectrum& spectrum, int threads) {
  spectrum_ = spectrum;
  transform_ = &transforms_.get(spectrum.samples());
  signals_.reserve(static_cast<std::size_t>(threads) * stride_of(spectrum) * sizeof(float));
}

void SpectrumAttention::run(const AttentionInput& in, const float* queries, const Results& results) const noexcept {
  const Shape s(in, spectrum_);
  const BinnedStates &k = spectrum_.k, &v = spectrum_.v;
  float* const signal =
      static_cast<float*>(signals_.data()) + static_cast<std::size_t>(omp_get_thread_num()) * s.stride;
  const std::size_t read = padded(s.tokens), begin = 0;
#pragma omp for schedule(dynamic, 1) nowait
  for (std::size_t task = 0; task < s.pairs * s.rows; ++task) {
    const std::size_t pair = task / s.rows, row = task % s.rows;
    float* const largest = results.first + pair * results.stride;
    float* const mix = largest + 2 * s.rows + row * s.head_dim;
    std::fill_n(signal, s.stride, 0.0F);
    multiply_keys(k.grid, s.of_pair(k, pair), queries + task * s.head_dim, s.head_dim, signal);
    transform_->backward(signal);
    loops().weigh_row({.rows = 1,
                       .keys = s.tokens,
                       .head_dim = s.head_dim,
                       .stride = read,
                       .q = nullptr,
                       .k = nullptr,
                       .v = nullptr,
                       .begin = &begin,
                       .end = &s.tokens,
                       .scale = (in.softcap > 0 ? in.softcap : in.scale) * 0x1.715476p0F,
                       .inverse_cap = in.softcap > 0 ? in.scale / in.softcap : 0,
                       .scores = signal,
                       .largest = largest + row,
                       .sum = largest + s.rows + row,
                       .mix = nullptr},
                      0);
    std::fill(signal + read, signal + s.stride, 0.0F);
    transform_->forward(signal);
    for (std::size_t channel = 0; channel < s.head_dim; channel += kChannelBlock)
      mix_values(v.grid, s.of_pair(v, pair) + channel, signal, s.head_dim,
                 std::min(kChannelBlock, s.head_dim - channel), mix + channel);
  }
}

}  // namespace kvs::cpu

namespace kvs::inline kernels {

void CpuBackend::spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, Operand out) {
  check_spectrum_attention(input, spectrum, out);
  if (input.q.empty()) return;
  spectrum_.prepare(spectrum, threads_);
  cpu::few_tokens_attention(input, compute_type(), out, threads_, row_scratch_, &spectrum_);
}

}  // namespace kvs::inline kernels
