// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <unistd.h>

#include <cstring>

// Each program contains this check. It is compiled for any x86-64 processor and runs before all other code. The other
// code, including constructors of static objects, is compiled for AVX2 and FMA, and would stop with an illegal
// instruction on a processor without them.

namespace {

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // the error cannot be reported elsewhere
}

[[gnu::constructor(101)]] void require_avx2() {
  constexpr int kEnvironment = 6;  // ErrorCode::kEnvironment
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return;
  write_text(program_invocation_short_name);
  write_text(
      ": error: processor: found no AVX2, FMA and BMI2, expected an x86-64 processor that has them (level v3)\n");
  _exit(kEnvironment);
}

}  // namespace
