// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/real_fft.h"

#include <pocketfft_hdronly.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"

namespace kvs::inline kernels {
namespace {

using Plan = pocketfft::detail::pocketfft_r<float>;

}  // namespace

RealFft::RealFft(std::size_t samples) : samples_(samples) {
  if (samples == 0) throw Error(ErrorCode::kUsage, "FFT", "found 0 samples, expected at least 1");
  if (samples > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(ErrorCode::kUnsupported, "FFT",
                "found " + std::to_string(samples) + " samples, expected at most 2147483647");
  }
  plan_ = std::make_shared<const Plan>(samples);
}

// PocketFFT's format is x[0], x[1] … without the imaginary parts of bin 0 and, for an even length, of the last bin.
void RealFft::forward(float* buffer) const noexcept {
  static_cast<const Plan*>(plan_.get())->exec(buffer, 1.0F, true);
  std::copy_backward(buffer + 1, buffer + samples_, buffer + samples_ + 1);
  buffer[1] = 0;
  if (samples_ % 2 == 0) buffer[samples_ + 1] = 0;
}

void RealFft::backward(float* buffer) const noexcept {
  std::copy(buffer + 2, buffer + samples_ + 1, buffer + 1);
  static_cast<const Plan*>(plan_.get())->exec(buffer, 1.0F, false);
}

}  // namespace kvs::inline kernels
