// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ranks/ranks.h"
#include "ranks/transport.h"

namespace kvs::inline ranks {

/// Creates a rank other than 0. It talks to rank 0 from the thread that calls it.
std::unique_ptr<Ranks> make_follower(std::unique_ptr<Transport> transport);

}  // namespace kvs::inline ranks
