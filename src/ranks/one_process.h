// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ranks/ranks.h"

namespace kvs::inline ranks {

/// Creates the run of a single process, without MPI.
std::unique_ptr<Ranks> make_one_process();

}  // namespace kvs::inline ranks
