// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kvs::cpu {

/// Ensures that parallel regions can have `threads` threads, because libgomp ends the program if it cannot create one.
/// glibc keeps the stacks of about 20 threads for reuse.  @throws Error kEnvironment with the number that is possible.
void reserve_threads(int threads);

/// Makes every parallel region of this thread, including those in libraries, request no more threads than it gets.
/// OMP_THREAD_LIMIT may leave fewer; OMP_DYNAMIC and OMP_MAX_ACTIVE_LEVELS are overridden. OpenBLAS waits forever for
/// threads that its region did not get.  @return how many of `threads` a region gets
int settle_threads(int threads);

}  // namespace kvs::cpu
