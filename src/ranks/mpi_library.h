// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/error.h"
#include "ranks/transport.h"

namespace kvs::inline ranks {

/// MPI reports another number of ranks than were launched: this MPI does not belong to the launcher, and each rank
/// would be a run of its own.
class ForeignLauncher : public Error {
 public:
  using Error::Error;
};

/// Loads libkvs_mpi.so from this program's folder or from ../lib/kvspectrum, and MPI with it, and joins the run.
/// @param expected  the number of ranks that the launcher has started
/// @throws Error kEnvironment if a library is missing; ForeignLauncher
std::unique_ptr<Transport> open_mpi(bool thread_may_differ, std::size_t expected);

}  // namespace kvs::inline ranks
