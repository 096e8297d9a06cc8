// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::inline kernels {
namespace {

const float* at(const Columns& columns, std::size_t row) {
  return columns.rows.data() + row * columns.rows.extent(1) + columns.first;
}

/// sum += tap ⊙ x (⊙ factor).
void add_tap(const float* tap, const float* x, const float* factor, std::size_t count, float* sum) {
  if (factor == nullptr) {
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) sum[i] += tap[i] * x[i];
    return;
  }
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) sum[i] += tap[i] * (x[i] * factor[i]);
}

/// @param token  of the member whose first row is `first`
void convolve_token(const ConvolutionInput& in, std::size_t first, std::size_t token, float* out) {
  const std::size_t channels = in.x.count, taps = in.taps.extent(0);
  if (in.bias.empty())
    std::fill_n(out, channels, 0.0F);
  else
    std::copy_n(in.bias.data(), channels, out);
  for (std::size_t tap = 0; tap < taps; ++tap) {
    const float* const weights = in.taps.data() + tap * channels;
    const std::size_t position = token + tap;  // counted from the oldest input of `past`
    if (position < taps - 1) {
      add_tap(weights, in.past.data() + position * channels, nullptr, channels, out);
    } else {
      const std::size_t row = first + position - (taps - 1);
      add_tap(weights, at(in.x, row), in.factor.empty() ? nullptr : at(in.factor, row), channels, out);
    }
  }
}

/// Keeps the last inputs of the only member.
void move_past(const ConvolutionInput& in) {
  const std::size_t channels = in.x.count, kept = in.past.extent(0), tokens = in.x.rows.extent(0);
  for (std::size_t n = 0; n < kept; ++n) {
    float* const to = in.past.data() + n * channels;
    if (n + tokens < kept) {
      std::copy_n(in.past.data() + (n + tokens) * channels, channels, to);
      continue;
    }
    const std::size_t row = n + tokens - kept;
    const float *const x = at(in.x, row), *const factor = in.factor.empty() ? nullptr : at(in.factor, row);
    for (std::size_t i = 0; i < channels; ++i) to[i] = factor == nullptr ? x[i] : x[i] * factor[i];
  }
}

}  // namespace

void CpuBackend::convolve(const ConvolutionInput& in, BackendView<float, 2> out) {
  const std::size_t rows = in.x.rows.extent(0), channels = in.x.count, taps = in.taps.extent(0);
  cpu::require(in.members > 0 && rows % in.members == 0 && out.shape() == std::array{rows, channels}, "convolve",
               "whole members, and out of x's shape");
  cpu::require(taps > 0 && in.taps.extent(1) == channels && in.past.shape() == std::array{taps - 1, channels} &&
                   (in.factor.empty() || in.factor.count == channels),
               "convolve", "taps of [tap, channel] and a past of [tap - 1, channel]");
  const std::size_t tokens = rows / in.members;
  const auto activate = cpu::loops().activate;
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    float* const to = out.data() + row * channels;
    convolve_token(in, row / tokens * tokens, row % tokens, to);
    if (in.silu) activate(Activation::kSilu, to, nullptr, channels, to, false);
  }
  if (in.members == 1) move_past(in);
}

}  // namespace kvs::inline kernels
