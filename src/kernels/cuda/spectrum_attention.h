// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuComplex.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/fft_plans.h"
#include "kernels/spectral_ops.h"

namespace kvs::cuda {

/// Attention that reads a spectrum in addition to rows. The scores of the spectrum's tokens, for all
/// queries, are one batch of inverse transforms of Σ_d q_d K_d. The values are mixed with the transforms of the
/// weights. Uses f32, with transforms in double. Not thread-safe.
class SpectrumAttention {
 public:
  explicit SpectrumAttention(const Context& context) : context_(context), plans_(context) {}

  /// @param in  checked, its past in f32;  @param type  of `out`
  void run(const AttentionInput& in, const KeySpectrum& spectrum, DType type, const Operand& out);

 private:
  const Context& context_;
  FftPlans plans_;
  DeviceArray<cuDoubleComplex> signals_;  // [sample, query]: bins, then scores, weights, and bins again
  DeviceArray<float> scores_;             // [query, row]: rows of the past, then rows of the tokens
};

}  // namespace kvs::cuda
