#pragma once

#include <memory>

#include "ranks/ranks.h"

namespace kvs {

/// The run of one process, without MPI.
std::unique_ptr<Ranks> make_one_process();

}  // namespace kvs
