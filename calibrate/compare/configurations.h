// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "calibrate/cache_choice.h"
#include "calibrate/compare/grid.h"
#include "export/engines/engine.h"

namespace kvs::inline compare {

/// Returns the cache of a configuration. @throws as cache_of_config
CacheChoice cache_choice(const Configuration& one, const ModelSource& source);

/// Returns the configurations of configs: each config unchanged, and with each storage type that its rows support.
std::vector<Configuration> file_configurations(std::span<const std::string> configs, const CompareGrid& grid,
                                               const ModelSource& source);

/// The configurations whose caches can be made, interleaved by budget, with functions that make these caches. A
/// configuration whose cache cannot be made, or that `engine` does not execute, gets the reason as its error and is
/// left out. Sets Configuration::form and engines. @param engine  nullptr: any
struct RunnableConfigurations {
  std::vector<std::size_t> configurations;
  std::vector<std::function<Cache()>> make;
};
RunnableConfigurations runnable_configurations(std::vector<Configuration>& configurations, const ModelSource& source,
                                               Backend& backend, std::size_t tokens, const Engine* engine);

}  // namespace kvs::inline compare
