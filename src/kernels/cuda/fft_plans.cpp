// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fft_plans.h"

#include "kernels/cuda/check.h"

namespace kvs::cuda {
namespace {

constexpr std::size_t kMaxPlans = 16;  // each plan may hold a work area as large as the data

}  // namespace

FftPlans::~FftPlans() { clear(); }

void FftPlans::clear() noexcept {
  for (const auto& [key, plan] : plans_) (void)cufftDestroy(plan);
  plans_.clear();
}

void FftPlans::run(cufftDoubleComplex* data, std::size_t samples, std::size_t signals, int direction) {
  if (samples <= 1 || signals == 0) return;  // a single sample is its own transform
  auto found = plans_.find({samples, signals});
  if (found == plans_.end()) {
    if (plans_.size() >= kMaxPlans) clear();
    cufftHandle plan = 0;
    check_cufft(cufftCreate(&plan), "cufftCreate");
    found = plans_.emplace(std::pair(samples, signals), plan).first;
    auto length = static_cast<long long>(samples);
    const auto batch = static_cast<long long>(signals);
    std::size_t work_bytes = 0;
    const cufftResult made =
        cufftMakePlanMany64(plan, 1, &length, &length, batch, 1, &length, batch, 1, CUFFT_Z2Z, batch, &work_bytes);
    if (made != CUFFT_SUCCESS) {
      (void)cufftDestroy(plan);
      plans_.erase(found);
      check_cufft(made, "cufftMakePlanMany64");
    }
    check_cufft(cufftSetStream(plan, context_.stream()), "cufftSetStream");
  }
  check_cufft(cufftExecZ2Z(found->second, data, data, direction), "cufftExecZ2Z");
}

}  // namespace kvs::cuda
