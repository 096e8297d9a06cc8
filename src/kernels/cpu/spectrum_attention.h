// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/real_fft.h"
#include "kernels/cpu/row_attention.h"
#include "kernels/spectral_ops.h"

namespace kvs::cpu {

/// The part of few_tokens_attention() that reads a spectrum, in f32. With a = Σ_d q_d K_d per bin, the
/// scores of all tokens are one inverse transform of a. With W = the transform of the weights, the mix of values is
/// Σ_bin Re(V[bin] · conj W[bin]). A query costs bins · 2 · head_dim products and two transforms, for all tokens.
class SpectrumAttention final : public FurtherRun {
 public:
  /// Makes plans and allocates memory. Call it before a team runs.
  void prepare(const KeySpectrum& spectrum, int threads);
  void run(const AttentionInput& in, const float* queries, const Results& results) const noexcept override;

 private:
  RealFfts transforms_;
  KeySpectrum spectrum_;  // prepared
  const RealFft* transform_ = nullptr;
  AlignedBuffer signals_;  // [thread]: a query's bins, then its scores, its weights, and bins again
};

}  // namespace kvs::cpu
