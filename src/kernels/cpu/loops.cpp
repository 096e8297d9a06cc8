// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/loops.h"

#include "kernels/instruction_set.h"

namespace kvs::cpu {

// Defined in simd/table.cpp, which is compiled once per instruction set.
#if defined(__x86_64__)
namespace avx2 {
extern const Loops table;
}
namespace avx512 {
extern const Loops table;
}
namespace avx512_bf16 {
extern const Loops table;
}

const Loops& loops() noexcept {
  const InstructionSet set = instruction_set();
  if (set >= InstructionSet::kAvx512Bf16) return avx512_bf16::table;
  return set == InstructionSet::kAvx512 ? avx512::table : avx2::table;
}
#else
namespace portable {
extern const Loops table;
}

const Loops& loops() noexcept { return portable::table; }
#endif

}  // namespace kvs::cpu
