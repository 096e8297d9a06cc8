#pragma once

#include <exception>
#include <string_view>

#include "ranks/launch.h"
#include "ranks/ranks.h"

namespace kvs {

/// The place of this process among those that a launcher has started.
const Launch& program_launch();
/// The ranks of this program's run: this process alone until join_ranks().
Ranks& program_ranks();

/// Joins the other processes that the launcher has started, with a process beside this one that sees it die. A rank
/// other than 0 prints nothing on standard output from here on. Does nothing in a run of one process.
/// @throws Error kEnvironment without MPI, or with another one than the launcher's
void join_ranks(std::string_view program);

/// Ends a rank other than 0 after an exception: rank 0 learns of it and prints the line; if it cannot be reached, this
/// rank prints it.  @return the status
int report_to_rank_0(std::string_view program, const std::exception_ptr& failure) noexcept;

}  // namespace kvs
