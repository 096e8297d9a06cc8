// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/attention_ops.h"
#include "kernels/cpu/aligned.h"

namespace kvs::cpu {

/// One more run of keys of few_tokens_attention(), which are no rows.
class FurtherRun {
 public:
  /// Memory of the results, as in RowRun. Pair p (a KV head) is at first + p · stride: [row], [row], [row, head_dim].
  struct Results {
    float* first;
    std::size_t stride;
  };

  /// Called by every thread of a team. The threads share the queries; run() does not wait for them.  @param queries
  /// [pair, row, head_dim]
  virtual void run(const AttentionInput& in, const float* queries, const Results& results) const noexcept = 0;

 protected:
  ~FurtherRun() = default;
};

/// Attention for few tokens, where packing the past for matrix products would cost more than it saves. Keys and values
/// are read in place, once for all query heads of a group, so a decode step costs the memory traffic of the past. Uses
/// f32 for every compute type.
/// Each run of kRowRun keys has its own softmax; runs are joined in order, so results do not depend on the threads.
/// Source: Dao et al., Flash-Decoding (2023).
/// Faster for up to 8 tokens with a past and up to kMaxQueryRows query rows per group. Only this attention computes the
/// mass.
constexpr std::size_t kRowRun = 256;
bool are_few_tokens(const AttentionInput& in) noexcept;
/// @param in  checked, with few tokens;  @param scratch  grows as needed;  @param further  null: none
/// @param log_sums  [member, query_head, token]: becomes ln Σ exp(score) over the keys that are read; null: not needed
void few_tokens_attention(const AttentionInput& in, DType type, Operand out, int threads, AlignedBuffer& scratch,
                          const FurtherRun* further = nullptr, float* log_sums = nullptr);

}  // namespace kvs::cpu
