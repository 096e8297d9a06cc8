// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kvs::inline run {

/// Makes a program independent of its caller's environment. Deletes variables that change the results of libraries or
/// make them print. Gives all threads stacks that are large enough, independent of `ulimit -s` and OMP_STACKSIZE. Call
/// first.
/// @throws Error kEnvironment if the stack cannot be made large enough
void settle_environment();

}  // namespace kvs::inline run
