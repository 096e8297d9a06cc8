// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_set.h"

#include <dnnl.hpp>

namespace kvs::inline kernels {
namespace {

InstructionSet found() noexcept {
#if defined(__x86_64__)
  // oneDNN respects the operating system and the environment variable. The bits of each set include all lower sets.
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [isa](dnnl_cpu_isa_t set) { return (isa & set) == set; };
  if (has(dnnl_cpu_isa_avx512_core_amx)) return InstructionSet::kAmx;
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return InstructionSet::kAvx512Bf16;
  if (has(dnnl_cpu_isa_avx512_core)) return InstructionSet::kAvx512;
  return InstructionSet::kAvx2;
#else
  return InstructionSet::kPortable;
#endif
}

}  // namespace

InstructionSet instruction_set() noexcept {
  static const InstructionSet set = found();
  return set;
}

std::string_view name_of(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::kPortable:
      return "portable";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx512Bf16:
      return "avx512_bf16";
    case InstructionSet::kAmx:
      return "amx";
  }
  return "";
}

}  // namespace kvs::inline kernels
