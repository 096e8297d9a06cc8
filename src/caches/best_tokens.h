// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace kvs::inline caches {

/// Returns the indices of the `count` largest scores, ascending; among equal scores, the first.
std::vector<std::size_t> best_tokens(const std::vector<double>& scores, std::size_t count);

}  // namespace kvs::inline caches
