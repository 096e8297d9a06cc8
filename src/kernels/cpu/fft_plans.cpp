#include "kernels/cpu/fft_plans.h"

#include <fftw3.h>

#include <limits>
#include <string>

#include "core/error.h"

namespace kvs {
namespace {

fftw_complex* as_fftw(std::complex<double>* data) noexcept { return reinterpret_cast<fftw_complex*>(data); }

}  // namespace

std::mutex& fft_planner_mutex() {
  static std::mutex mutex;
  return mutex;
}

FftBuffer::FftBuffer(std::size_t size)
    : data_(reinterpret_cast<std::complex<double>*>(fftw_alloc_complex(size == 0 ? 1 : size))), size_(size) {
  if (data_ == nullptr) {
    throw Error(ErrorCode::kEnvironment, "FFT buffer", "out of memory for " + std::to_string(16 * size) + " bytes");
  }
}

void FftBuffer::Free::operator()(std::complex<double>* data) const noexcept { fftw_free(data); }

FftPlan::FftPlan(std::size_t samples, FftDirection direction) {
  if (samples == 0) throw Error(ErrorCode::kUsage, "FFT", "found 0 samples, expected at least 1");
  if (samples > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(ErrorCode::kUnsupported, "FFT",
                "found " + std::to_string(samples) + " samples, expected at most 2147483647");
  }
  const FftBuffer from(samples), to(samples);
  const std::lock_guard lock(fft_planner_mutex());
  fftw_plan plan = fftw_plan_dft_1d(static_cast<int>(samples), as_fftw(from.data()), as_fftw(to.data()),
                                    direction == FftDirection::kForward ? FFTW_FORWARD : FFTW_BACKWARD, FFTW_ESTIMATE);
  if (plan == nullptr) throw Error(ErrorCode::kInternal, "FFT", "no plan for " + std::to_string(samples) + " samples");
  plan_ = std::shared_ptr<void>(plan, [](void* held) {
    const std::lock_guard destroy(fft_planner_mutex());
    fftw_destroy_plan(static_cast<fftw_plan>(held));
  });
}

void FftPlan::run(std::complex<double>* from, std::complex<double>* to) const noexcept {
  fftw_execute_dft(static_cast<fftw_plan>(plan_.get()), as_fftw(from), as_fftw(to));
}

const FftPlan& FftPlans::get(std::size_t samples, FftDirection direction) {
  const std::lock_guard lock(mutex_);
  return plans_.try_emplace({samples, direction}, samples, direction).first->second;
}

}  // namespace kvs
