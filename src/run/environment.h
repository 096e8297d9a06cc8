#pragma once

namespace kvs {

/// Makes a program the same whatever its caller left it: variables that change what libraries compute or that make them
/// print go, and all threads have stacks that are large enough, small limits (`ulimit -s`) and OMP_STACKSIZE or not.
/// To be called first.  @throws Error kEnvironment if the stack cannot be made large enough
void settle_environment();

}  // namespace kvs
