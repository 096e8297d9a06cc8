#pragma once

#include <memory>

#include "ranks/transport.h"

namespace kvs {

/// Loads libkvs_mpi.so from beside this program or from ../lib/kvspectrum, and MPI with it, and joins the run.
/// @param expected  the number of ranks that the launcher has started
/// @throws Error kEnvironment if one of them is missing, or MPI sees another number of ranks: it is not the launcher's
std::unique_ptr<Transport> open_mpi(bool thread_may_differ, std::size_t expected);

}  // namespace kvs
