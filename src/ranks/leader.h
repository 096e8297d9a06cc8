// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "ranks/ranks.h"
#include "ranks/transport.h"

namespace kvs::inline ranks {

/// Creates rank 0 of several. A separate thread talks to the other ranks: it hands out units and takes in results while
/// this rank computes too.
/// @param open  called by that thread, the only one that uses the transport
/// @throws what `open` throws
std::unique_ptr<Ranks> make_leader(std::function<std::unique_ptr<Transport>()> open);

}  // namespace kvs::inline ranks
