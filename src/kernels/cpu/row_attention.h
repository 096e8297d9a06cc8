#pragma once

#include <cstddef>

#include "kernels/backend.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/spectrum_attention.h"

namespace kvs::cpu {

/// Attention of so few tokens that packing the past for matrix products would cost more than they save: keys and values
/// are read where they lie, once for all query heads of a group. What a decode step takes is then the memory traffic of
/// the past. f32 throughout, whatever the compute type.
/// Runs of kRowRun keys are softened apart and joined in order, so results do not depend on the threads.
/// Source: Dao et al., Flash-Decoding (2023).
/// Pays for up to 8 tokens with a past, of up to kMaxQueryRows rows of a group's queries; the only one that knows the
/// mass, and that reads a spectrum, which is one more run.
constexpr std::size_t kRowRun = 256;
bool are_few_tokens(const AttentionInput& in) noexcept;
/// @param in  checked, and of few tokens;  @param scratch  grows as needed
void few_tokens_attention(const AttentionInput& in, DType type, Operand out, int threads, AlignedBuffer& scratch,
                          SpectrumAttention& spectrum);

}  // namespace kvs::cpu
