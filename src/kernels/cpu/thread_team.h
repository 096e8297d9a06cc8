#pragma once

namespace kvs::cpu {

/// Makes sure that parallel regions can have `threads` threads, for where libgomp cannot make one it ends the program;
/// glibc keeps the stacks of about 20 for them.  @throws Error kEnvironment saying how many can be had.
void reserve_threads(int threads);

/// Makes every parallel region of this thread, those of libraries included, ask for no more threads than it gets:
/// OMP_THREAD_LIMIT may leave fewer, and OMP_DYNAMIC and OMP_MAX_ACTIVE_LEVELS are overruled. OpenBLAS waits for ever
/// for threads that its region did not get.  @return how many of `threads` a region gets
int settle_threads(int threads);

}  // namespace kvs::cpu
