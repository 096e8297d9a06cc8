// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace kvs::inline kernels {

/// Instruction sets of matrix products and inner loops, ascending. On x86-64 everything else is compiled for AVX2.
/// kPortable is the set of other processors: the compiler's vectors of eight floats.
enum class InstructionSet : std::uint8_t { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

/// Returns this processor's set, or a lower one that the environment variable DNNL_MAX_CPU_ISA names.
InstructionSet instruction_set() noexcept;

/// Returns "portable", "avx2", "avx512", "avx512_bf16" or "amx".
std::string_view name_of(InstructionSet set) noexcept;

/// Returns true if the processor multiplies bf16 faster than f32 (from AVX-512 BF16 on). Otherwise bf16 operands are
/// widened to f32.
inline bool has_bf16_products() noexcept { return instruction_set() >= InstructionSet::kAvx512Bf16; }

}  // namespace kvs::inline kernels
