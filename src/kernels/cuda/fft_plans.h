// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cufft.h>

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "kernels/cuda/context.h"

namespace kvs::cuda {

/// Plans for complex double transforms along the outer axis of [sample, signal], in place. They use cuFFT's advanced
/// layout with stride = signals and distance 1, so nothing is transposed. Not thread-safe.
class FftPlans {
 public:
  explicit FftPlans(const Context& context) : context_(context) {}
  ~FftPlans();
  FftPlans(const FftPlans&) = delete;
  FftPlans& operator=(const FftPlans&) = delete;

  /// Queues an unscaled transform on the context's stream. @param direction  CUFFT_FORWARD or CUFFT_INVERSE
  /// @throws Error kEnvironment if cuFFT cannot allocate its work area.
  void run(cufftDoubleComplex* data, std::size_t samples, std::size_t signals, int direction);

 private:
  void clear() noexcept;

  const Context& context_;
  std::map<std::pair<std::size_t, std::size_t>, cufftHandle> plans_;  // key: samples, signals
};

}  // namespace kvs::cuda
