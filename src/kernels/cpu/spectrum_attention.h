#pragma once

#include <cstddef>

#include "kernels/backend.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/real_fft.h"

namespace kvs::cpu {

/// The part of few_tokens_attention() that reads AttentionInput::spectrum, in f32. With a = Σ_d q_d K_d over the bins,
/// the scores of all tokens are one inverse transform of a; with W the transform of their weights, the mix of values
/// is Σ_bin Re(V[bin] · conj W[bin]): bins · 2 · head_dim products and two transforms a query, whatever the tokens.
class SpectrumAttention {
 public:
  /// Where results go, as RowRun's: of pair p (a KV head) at first + p · stride, [row], [row], [row, head_dim].
  struct Results {
    float* first;
    std::size_t stride;
  };

  /// Before a team runs: plans and memory.
  void prepare(const AttentionInput& in, int threads);
  /// By every thread of a team, which shares the queries; does not wait for it.  @param queries  [pair, row, head_dim]
  void run(const AttentionInput& in, const float* queries, const Results& results) const noexcept;

 private:
  RealFfts transforms_;
  const RealFft* transform_ = nullptr;  // of the input that was prepared
  AlignedBuffer signals_;               // [thread]: a query's bins, then its scores, weights, and bins again
};

}  // namespace kvs::cpu
