#pragma once

#include <memory>

#include "core/error.h"
#include "ranks/transport.h"

namespace kvs {

/// MPI sees another number of ranks than were launched: it is not the launcher's, and every rank is one alone.
class ForeignLauncher : public Error {
 public:
  using Error::Error;
};

/// Loads libkvs_mpi.so from beside this program or from ../lib/kvspectrum, and MPI with it, and joins the run.
/// @param expected  the number of ranks that the launcher has started
/// @throws Error kEnvironment if one of them is missing; ForeignLauncher
std::unique_ptr<Transport> open_mpi(bool thread_may_differ, std::size_t expected);

}  // namespace kvs
