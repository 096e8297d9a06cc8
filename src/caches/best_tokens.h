#pragma once

#include <cstddef>
#include <vector>

namespace kvs {

/// Indices of the `count` largest scores, ascending; the first of equal ones.
std::vector<std::size_t> best_tokens(const std::vector<double>& scores, std::size_t count);

}  // namespace kvs
