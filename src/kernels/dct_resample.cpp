// SPDX-License-Identifier: Apache-2.0
#include "kernels/dct_resample.h"

#include <pocketfft_hdronly.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"

namespace kvs::inline kernels {
namespace {

constexpr int kDct = 2, kInverse = 3;

/// Applies the orthonormal DCT-II or its inverse, times `scale`, to the columns of x [samples, channels], in place.
void transform_columns(double* x, std::size_t samples, std::size_t channels, int type, double scale) {
  const auto row = static_cast<std::ptrdiff_t>(channels * sizeof(double));
  const pocketfft::stride_t strides{row, sizeof(double)};
  pocketfft::dct({samples, channels}, strides, strides, {0}, type, x, x,
                 scale * std::sqrt(0.5 / static_cast<double>(samples)), true);
}

}  // namespace

void dct_resample(TensorView<const float, 2> states, std::size_t first_bin, double scale, TensorView<float, 2> out) {
  const std::size_t tokens = states.extent(0), channels = states.extent(1), count = out.extent(0);
  if (count == 0 || count > tokens || first_bin > tokens - count)
    throw Error(ErrorCode::kUsage, "DCT resampling",
                "found coefficients " + std::to_string(first_bin) + " to " + std::to_string(first_bin + count) +
                    " (exclusive), expected at least one of " + std::to_string(tokens));
  if (out.extent(1) != channels) throw Error(ErrorCode::kInternal, "DCT resampling", "the channel counts differ");
  std::vector<double> x(states.span().begin(), states.span().end());
  transform_columns(x.data(), tokens, channels, kDct, 1);
  double* const kept = x.data() + first_bin * channels;
  transform_columns(kept, count, channels, kInverse, scale);
  for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = static_cast<float>(kept[i]);
}

}  // namespace kvs::inline kernels
