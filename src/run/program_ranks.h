// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string_view>

#include "ranks/launch.h"
#include "ranks/ranks.h"

namespace kvs::inline run {

/// The rank of this process among those that a launcher has started.
const Launch& program_launch();
/// The ranks of this program's run; before join_ranks(), only this process.
Ranks& program_ranks();

/// Joins the other processes that the launcher has started. A parent process watches this one in case it dies. From
/// here on, a rank other than 0 prints nothing on standard output. Does nothing in a run of one process.
/// @throws Error kEnvironment without MPI, or with an MPI other than the launcher's
void join_ranks(std::string_view program);

/// Ends a rank other than 0 after an exception: rank 0 receives the error and prints the line. If rank 0 cannot be
/// reached, this rank prints it.  @return the status
int report_to_rank_0(std::string_view program, const std::exception_ptr& failure) noexcept;

}  // namespace kvs::inline run
