// SPDX-License-Identifier: Apache-2.0
#include "caches/best_tokens.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace kvs::inline caches {

std::vector<std::size_t> best_tokens(const std::vector<double>& scores, std::size_t count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t token) { return scores[token]; });
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

}  // namespace kvs::inline caches
