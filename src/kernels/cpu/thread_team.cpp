#include "kernels/cpu/thread_team.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#include <latch>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"

namespace kvs::cpu {
namespace {

/// Ends as libgomp's threads do: what glibc loads for that (libgcc_s) is loaded while there is memory.
void* wait_and_exit(void* gate) {
  static_cast<std::latch*>(gate)->wait();
  ::pthread_exit(nullptr);
}

/// @return 0, or why fewer than `count` threads can exist at a time; `made` is their number.
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

/// Stacks that glibc keeps for the next threads when some end (it keeps 40 MiB), as they do where regions of several
/// sizes take turns: 8 MiB, its default, is more than anything here needs.
void make_stacks_small() {
  constexpr std::size_t kStackBytes = std::size_t{2} << 20;
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  if (::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes > kStackBytes &&
      ::pthread_attr_setstacksize(&attributes, kStackBytes) == 0)
    (void)::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

/// Where address space is limited, threads share one heap: glibc would reserve 64 MiB or more for each.
void share_heap() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace

void reserve_threads(int threads) {
  share_heap();
  make_stacks_small();
  std::size_t made = 0;
  // At least one, which loads what the end of a thread needs.
  const int error = try_threads(threads > 1 ? static_cast<std::size_t>(threads) - 1 : 1, made);
  if (error != 0 && threads > 1)
    throw Error(ErrorCode::kEnvironment, "threads",
                "found room for " + std::to_string(made + 1) + ", expected " + std::to_string(threads) + ": " +
                    std::generic_category().message(error));
}

}  // namespace kvs::cpu
