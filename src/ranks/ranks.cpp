// SPDX-License-Identifier: Apache-2.0
#include "ranks/ranks.h"

#include <utility>

namespace kvs::inline ranks {

void Ranks::share(const Units& units, const Compute& compute, const Take& take) {
  const auto start = [&](std::size_t unit) {
    return [result = std::make_shared<UnitResult>(compute(unit))] { return std::move(*result); };
  };
  run(units, start, take, false);
}

std::vector<Json> Ranks::share_with_all(const Units& units, const std::function<Json(std::size_t)>& compute,
                                        const std::function<void(std::size_t, const Json&)>& take) {
  Json all = Json::array();
  share(
      units, [&](std::size_t unit) { return UnitResult{compute(unit)}; },
      [&](std::size_t unit, UnitResult result) {
        if (take) take(unit, result.record);
        all.push_back(std::move(result.record));
      });
  if (!alone()) all = broadcast(std::move(all));
  return {all.begin(), all.end()};
}

}  // namespace kvs::inline ranks
