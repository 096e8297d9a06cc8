#pragma once

namespace kvs {

/// Makes a program independent of its caller's environment: deletes variables that change what libraries compute or
/// that make them print, and gives all threads stacks that are large enough, whatever `ulimit -s` and OMP_STACKSIZE
/// say. Must be called first.
/// @throws Error kEnvironment if the stack cannot be made large enough
void settle_environment();

}  // namespace kvs
