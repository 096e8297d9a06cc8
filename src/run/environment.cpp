// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

#include "core/error.h"
#include "run/exit_report.h"

namespace kvs::inline run {
namespace {

/// Switches of oneDNN that print to standard output, write files, compute f32 in bf16, or change the order of sums.
constexpr const char* kOneDnnSwitches[] = {"VERBOSE",     "VERBOSE_TIMESTAMP",   "JIT_DUMP",
                                           "JIT_PROFILE", "DEFAULT_FPMATH_MODE", "CPU_ISA_HINTS"};
/// Variables that change OpenBLAS's order of sums or make it print, make HDF5 print or load other code, or leave
/// OpenSSL without SHA-256.
constexpr const char* kOtherSwitches[] = {"OPENBLAS_BLOCK_FACTOR", "OPENBLAS_VERBOSE",    "OMP_ADAPTIVE", "HDF5_DEBUG",
                                          "HDF5_PLUGIN_PATH",      "HDF5_PLUGIN_PRELOAD", "OPENSSL_CONF"};

void clear_switches() {
  for (const std::string name : kOneDnnSwitches)
    for (const char* const prefix : {"DNNL_", "ONEDNN_"}) ::unsetenv((prefix + name).c_str());
  for (const char* const name : kOtherSwitches) ::unsetenv(name);
}

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kMinStack = kMebibyte, kMainStack = 8 * kMebibyte, kThreadStack = 2 * kMebibyte;

/// The main thread's stack can grow up to the current limit.
void raise_stack_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kMainStack) return;
  limit.rlim_cur = std::min<rlim_t>(kMainStack, limit.rlim_max);
  if (::setrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= kMinStack) return;
  throw Error(ErrorCode::kEnvironment, "stack",
              "found a limit of " + std::to_string(limit.rlim_max / 1024) + " KiB, expected at least " +
                  std::to_string(kMinStack / 1024) + " (ulimit -s)");
}

/// By default, stacks of new threads would be as large as the limit of the main thread's stack at the start of the
/// program. 8 MiB, the usual size, is more than anything here needs. The C library caches 40 MiB of stacks of ended
/// threads for new ones. Threads end when regions of several sizes take turns.
void set_thread_stacks() {
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  if (::pthread_attr_setstacksize(&attributes, kThreadStack) == 0) (void)::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

/// Returns true if the code at `address` is libgomp's.
bool is_of_openmp(const void* address) noexcept {
  Dl_info found{};
  return ::dladdr(address, &found) != 0 && std::strstr(found.dli_fname, "libgomp") != nullptr;
}

}  // namespace

void settle_environment() {
  clear_switches();
  raise_stack_limit();
  set_thread_stacks();
}

}  // namespace kvs::inline run

/// Replaces glibc's function. Otherwise libgomp, if it gets no thread, would end the program with two lines of its own.
/// Its threads' stacks would have the size OMP_STACKSIZE, which may be too small or too large.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  const bool of_openmp = kvs::is_of_openmp(__builtin_return_address(0));
  if (of_openmp && attributes != nullptr)
    (void)::pthread_attr_setstacksize(const_cast<pthread_attr_t*>(attributes), kvs::kThreadStack);
  const int error = create(thread, attributes, run, argument);
  if (error != 0 && of_openmp)
    kvs::end_program(std::make_exception_ptr(kvs::Error(kvs::ErrorCode::kEnvironment, "threads",
                                                        "cannot be made: " + std::generic_category().message(error))));
  return error;
}
