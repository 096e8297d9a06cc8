// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/fft_plans.h"

#include <pocketfft_hdronly.h>

#include <limits>
#include <string>

#include "core/error.h"

namespace kvs::inline kernels {
namespace {

using Plan = pocketfft::detail::pocketfft_c<double>;
using Sample = pocketfft::detail::cmplx<FftLanes>;
static_assert(sizeof(Sample) == sizeof(FftSample));
static_assert(alignof(Sample) == alignof(FftSample));

}  // namespace

FftPlan::FftPlan(std::size_t samples) {
  if (samples == 0) throw Error(ErrorCode::kUsage, "FFT", "found 0 samples, expected at least 1");
  if (samples > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(ErrorCode::kUnsupported, "FFT",
                "found " + std::to_string(samples) + " samples, expected at most 2147483647");
  }
  plan_ = std::make_shared<const Plan>(samples);
}

void FftPlan::run(FftSample* signals, FftDirection direction) const noexcept {
  static_cast<const Plan*>(plan_.get())
      ->exec(reinterpret_cast<Sample*>(signals), 1.0, direction == FftDirection::kForward);
}

const FftPlan& FftPlans::get(std::size_t samples) {
  const std::lock_guard lock(mutex_);
  return plans_.try_emplace(samples, samples).first->second;
}

}  // namespace kvs::inline kernels
