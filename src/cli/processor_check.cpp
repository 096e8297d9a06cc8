#include <errno.h>
#include <unistd.h>

#include <cstring>

// Part of each program. Compiled for any x86-64 processor, and run before everything else: what follows, constructors
// of static objects included, is compiled for AVX2 and FMA, and would end in an illegal instruction without them.

namespace {

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // there is nobody else to tell
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
