// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/thread_team.h"

#include <malloc.h>
#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <latch>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"

namespace kvs::cpu {
namespace {

/// Ends like libgomp's threads, so that glibc loads libgcc_s, which this requires, while memory is available.
void* wait_and_exit(void* gate) {
  static_cast<std::latch*>(gate)->wait();
  ::pthread_exit(nullptr);
}

/// @return 0, or the error that prevents `count` simultaneous threads; `made` is the number created.
int try_threads(std::size_t count, std::size_t& made) {
  std::latch gate(1);
  std::vector<pthread_t> threads(count);
  int error = 0;
  for (made = 0; made < count; ++made) {
    error = ::pthread_create(&threads[made], nullptr, wait_and_exit, &gate);
    if (error != 0) break;
  }
  gate.count_down();
  for (std::size_t n = 0; n < made; ++n) ::pthread_join(threads[n], nullptr);
  return error;
}

/// Makes threads share one heap if address space is limited: glibc would reserve 64 MiB or more for each thread.
void share_heap() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace

void reserve_threads(int threads) {
  share_heap();
  std::size_t made = 0;
  // Creates at least one thread, which loads the library that a thread's end needs.
  const int error = try_threads(threads > 1 ? static_cast<std::size_t>(threads) - 1 : 1, made);
  if (error != 0 && threads > 1)
    throw Error(ErrorCode::kEnvironment, "threads",
                "found room for " + std::to_string(made + 1) + ", expected " + std::to_string(threads) + ": " +
                    std::generic_category().message(error));
}

int settle_threads(int threads) {
  ::omp_set_dynamic(0);
  if (::omp_get_max_active_levels() < 1) ::omp_set_max_active_levels(1);
  int found = 1;
#pragma omp parallel num_threads(std::max(threads, ::omp_get_max_threads()))
#pragma omp single
  found = ::omp_get_num_threads();
  ::omp_set_num_threads(std::min(::omp_get_max_threads(), found));
  return std::min(threads, found);
}

}  // namespace kvs::cpu
