#pragma once

#include <cstddef>

#include "kernels/attention_ops.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/spectrum_attention.h"

namespace kvs::cpu {

/// Attention for few tokens, where packing the past for matrix products would cost more than it saves. Keys and values
/// are read in place, once for all query heads of a group, so a decode step costs the memory traffic of the past. Uses
/// f32 for every compute type.
/// Each run of kRowRun keys has its own softmax; runs are joined in order, so results do not depend on the threads.
/// Source: Dao et al., Flash-Decoding (2023).
/// Faster for up to 8 tokens with a past and up to kMaxQueryRows query rows per group. Only this attention computes the
/// mass. A spectrum is one more run.
constexpr std::size_t kRowRun = 256;
bool are_few_tokens(const AttentionInput& in) noexcept;
/// @param in  checked, with few tokens;  @param scratch  grows as needed;  @param spectrum  prepared, or null
void few_tokens_attention(const AttentionInput& in, DType type, Operand out, int threads, AlignedBuffer& scratch,
                          const SpectrumAttention* spectrum = nullptr);

}  // namespace kvs::cpu
