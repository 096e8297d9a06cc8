#pragma once

#include <memory>

#include "ranks/ranks.h"

namespace kvs {

/// Creates the run of a single process, without MPI.
std::unique_ptr<Ranks> make_one_process();

}  // namespace kvs
