#include "kernels/cpu/real_fft.h"

#include <fftw3.h>

#include <limits>
#include <mutex>
#include <string>

#include "core/error.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/fft_plans.h"

namespace kvs {
namespace {

std::shared_ptr<void> owned(fftwf_plan plan, std::size_t samples) {
  if (plan == nullptr) throw Error(ErrorCode::kInternal, "FFT", "no plan for " + std::to_string(samples) + " samples");
  return {plan, [](void* held) {
            const std::lock_guard lock(fft_planner_mutex());
            fftwf_destroy_plan(static_cast<fftwf_plan>(held));
          }};
}

}  // namespace

RealFft::RealFft(std::size_t samples) {
  if (samples > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(ErrorCode::kUnsupported, "FFT",
                "found " + std::to_string(samples) + " samples, expected at most 2147483647");
  }
  cpu::AlignedBuffer memory;
  memory.reserve(buffer_size(samples) * sizeof(float));
  auto* const reals = static_cast<float*>(memory.data());
  auto* const bins = static_cast<fftwf_complex*>(memory.data());
  const int count = static_cast<int>(samples);
  std::unique_lock lock(fft_planner_mutex());
  fftwf_plan to_bins = fftwf_plan_dft_r2c_1d(count, reals, bins, FFTW_ESTIMATE),
             to_reals = fftwf_plan_dft_c2r_1d(count, bins, reals, FFTW_ESTIMATE);
  lock.unlock();
  forward_ = owned(to_bins, samples);
  backward_ = owned(to_reals, samples);
}

void RealFft::forward(float* buffer) const noexcept {
  fftwf_execute_dft_r2c(static_cast<fftwf_plan>(forward_.get()), buffer, reinterpret_cast<fftwf_complex*>(buffer));
}

void RealFft::backward(float* buffer) const noexcept {
  fftwf_execute_dft_c2r(static_cast<fftwf_plan>(backward_.get()), reinterpret_cast<fftwf_complex*>(buffer), buffer);
}

}  // namespace kvs
