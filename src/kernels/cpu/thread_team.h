#pragma once

namespace kvs::cpu {

/// Makes sure that parallel regions can have `threads` threads, for where libgomp cannot make one it ends the program;
/// glibc keeps the stacks of about 20 for them.  @throws Error kEnvironment saying how many can be had.
void reserve_threads(int threads);

}  // namespace kvs::cpu
