// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_set.h"

#include <cstdlib>
#include <string_view>

// For libraries that do not link oneDNN, which kernels/cpu/instruction_set.cpp asks. export/codec compiles this file.
namespace kvs::inline kernels {
namespace {

#if defined(__x86_64__)
bool has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

InstructionSet detected() noexcept {
  const char* const limit = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string_view name = limit == nullptr ? "" : limit;
  const bool limited = name.starts_with("SSE") || name.starts_with("AVX2") || name == "AVX";
  return !limited && has_avx512() ? InstructionSet::kAvx512 : InstructionSet::kAvx2;
}
#else
InstructionSet detected() noexcept { return InstructionSet::kPortable; }
#endif

}  // namespace

InstructionSet instruction_set() noexcept {
  static const InstructionSet set = detected();
  return set;
}

}  // namespace kvs::inline kernels
