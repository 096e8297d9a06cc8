// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/lapack_library.h"

#include <dlfcn.h>
#include <omp.h>
#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/thread_team.h"

namespace kvs::cpu {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{128} << 20;  // OpenBLAS' BUFFER_SIZE on x86-64

/// @throws Error kEnvironment unless `buffers` buffers can be mapped at once.
void require_room(std::size_t buffers, int threads) {
  std::vector<void*> mapped;
  mapped.reserve(buffers);
  while (mapped.size() < buffers) {
    void* const buffer = ::mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) break;
    mapped.push_back(buffer);
  }
  for (void* const buffer : mapped) ::munmap(buffer, kBufferBytes);
  if (mapped.size() == buffers) return;
  const std::size_t mebibyte = std::size_t{1} << 20;
  throw Error(ErrorCode::kEnvironment, "memory",
              "found less than " + std::to_string(buffers * kBufferBytes / mebibyte) +
                  " MiB of address space, expected that much for decompositions by " + std::to_string(threads) +
                  (threads == 1 ? " thread" : " threads"));
}

[[noreturn]] void fail_to_load(const std::string& what) {
  const char* const why = ::dlerror();
  throw Error(ErrorCode::kEnvironment, what, std::string("cannot be loaded: ") + (why == nullptr ? "unknown" : why));
}

class Loaded {
 public:
  Loaded() {
    ::setenv("OPENBLAS_NUM_THREADS", "1", 1);  // read when the library starts; afterwards it follows OpenMP
    // OpenBLAS must come first: LAPACKE also depends on other BLAS and LAPACK libraries.
    void* const blas = open("libopenblas.so.0", RTLD_GLOBAL);
    void* const lapacke = open("liblapacke.so.3", RTLD_LOCAL);
    find(blas, "openblas_set_num_threads", set_threads_);
    find(blas, "openblas_get_config", routines.openblas_config);
    find(blas, "openblas_get_corename", routines.openblas_corename);
    find(blas, "cblas_dgemm", routines.dgemm);
    find(blas, "cblas_dsyrk", routines.dsyrk);
    find(blas, "cblas_dtrmm", routines.dtrmm);
    find(blas, "cblas_dtrsm", routines.dtrsm);
    find(lapacke, "LAPACKE_dgesdd", routines.dgesdd);
    find(lapacke, "LAPACKE_dormtr", routines.dormtr);
    find(lapacke, "LAPACKE_dpotrf", routines.dpotrf);
    find(lapacke, "LAPACKE_dstedc", routines.dstedc);
    find(lapacke, "LAPACKE_dsterf", routines.dsterf);
    find(lapacke, "LAPACKE_dsytrd", routines.dsytrd);
  }

  /// Allocates the buffers of `threads` threads and of their caller. OpenBLAS keeps them afterwards.
  void take_buffers(int threads) const {
    set_threads_(threads);
    double one = 1;
    routines.dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, 1, 1, 1.0, &one, 1, &one, 1);
  }

  LapackLibrary routines{};

 private:
  static void* open(const char* name, int visibility) {
    void* const library = ::dlopen(name, RTLD_NOW | visibility);
    if (library == nullptr) fail_to_load(name);
    return library;
  }
  template <class Routine>
  static void find(void* library, const char* name, Routine& routine) {
    routine = reinterpret_cast<Routine>(::dlsym(library, name));
    if (routine == nullptr) fail_to_load(name);
  }

  void (*set_threads_)(int) = nullptr;
};

}  // namespace

const LapackLibrary& lapack() {
  static std::mutex mutex;
  static int ready = 0;  // number of threads that have buffers
  const std::scoped_lock lock(mutex);
  const int threads = settle_threads(omp_get_max_threads());
  // One buffer for the caller, and the memory of another for the libraries themselves.
  if (ready == 0) require_room(static_cast<std::size_t>(threads) + 2, threads);
  static const Loaded loaded;
  if (ready < threads) {
    if (ready > 0) require_room(static_cast<std::size_t>(threads - ready), threads);
    loaded.take_buffers(threads);
    ready = threads;
  }
  return loaded.routines;
}

}  // namespace kvs::cpu
