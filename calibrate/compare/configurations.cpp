// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/configurations.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

#include "calibrate/common/engine_pairs.h"
#include "calibrate/registry.h"
#include "core/error.h"

namespace kvs::inline compare {
namespace {

/// Returns the priority of a configuration's method. A configuration without a cache may have the name of a series: its
/// priority is arbitrary.
int priority_of(const Configuration& one) {
  const Method* const method = find_method(one.method);
  return method == nullptr ? 0 : method->priority;
}

/// Returns all configurations interleaved by budget, likely winners first. If the time ends early, each budget then has
/// scored configurations.
std::vector<std::size_t> budgets_in_turn(std::span<const Configuration> configurations) {
  std::vector<std::size_t> order(configurations.size()), turn(configurations.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t n) {
    const Configuration& one = configurations[n];
    return std::tuple(priority_of(one), one.type.empty(), !one.calibrated);
  });
  std::map<double, std::size_t> count;
  for (const std::size_t n : order) turn[n] = count[configurations[n].budget]++;
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return turn[n]; });
  return order;
}

}  // namespace

CacheChoice cache_choice(const Configuration& one, const ModelSource& source) {
  CacheChoice choice =
      one.config.empty() ? CacheChoice{.method = find_method(one.method)} : cache_of_config(one.config, source);
  choice.parameters.push_back({one.settings, one.label + ": ", ErrorCode::kUsage});
  return choice;
}

std::vector<Configuration> file_configurations(std::span<const std::string> configs, const CompareGrid& grid,
                                               const ModelSource& source) {
  const auto stem = [](const std::string& path) { return std::filesystem::path(path).stem(); };
  std::vector<Configuration> configurations;
  for (const std::string& path : configs) {
    const CacheChoice choice = cache_of_config(path, source);
    const bool alone = std::ranges::count(configs, stem(path), stem) == 1;
    const std::string name = choice.name() + " (" + (alone ? stem(path).string() : path) + ')';
    std::vector<std::string> types{""};
    if (choice.takes_kv_type()) types.insert(types.end(), grid.composed.begin(), grid.composed.end());
    for (const std::string& type : types) {
      Configuration one{.label = configuration_label(name, type),
                        .method = choice.name(),
                        .type = type,
                        .config = path,
                        .calibrated = choice.calibrated};
      one.settings = kv_type_settings(type);
      one.shared_bytes = choice.shared_bytes();
      if (choice.method->prefill == Prefill::kWhole) one.settings["prefix"] = grid.prefix;
      configurations.push_back(std::move(one));
    }
  }
  return configurations;
}

namespace {

/// Sets the form of the cache, and the names of the engines that execute it.
void name_engines(Configuration& one, const CacheChoice& choice, const EngineCache& cache) {
  one.form = choice.form();
  one.engines.clear();
  for (EngineUse& use : engine_uses(cache)) one.engines.push_back(std::move(use.engine));
}

/// Names the engines of a cache above its budget, whose settings are known unless the method has a size.
void name_engines_if_known(Configuration& one, const ModelSource& source) {
  try {
    const CacheChoice choice = cache_choice(one, source);
    name_engines(one, choice, EngineCache(choice, source.config()));
  } catch (const Error&) {
    one.engines.clear();
  }
}

}  // namespace

RunnableConfigurations runnable_configurations(std::vector<Configuration>& configurations, const ModelSource& source,
                                               Backend& backend, std::size_t tokens, const Engine* engine) {
  RunnableConfigurations all;
  for (const std::size_t n : budgets_in_turn(configurations)) {
    if (!configurations[n].error.empty()) {
      name_engines_if_known(configurations[n], source);
      continue;
    }
    try {
      // A config's factors are loaded for each document, so that memory holds those of one at a time.
      std::function<Cache()> make = [one = configurations[n], &source, &backend, tokens] {
        return cache_maker(cache_choice(one, source), backend, source.config(), tokens)();
      };
      (void)make();
      const CacheChoice choice = cache_choice(configurations[n], source);
      const EngineCache cache(choice, source.config());
      name_engines(configurations[n], choice, cache);
      if (engine != nullptr)
        if (const std::string obstacle = engine->obstacle(cache); !obstacle.empty())
          throw Error(ErrorCode::kUnsupported, std::string(engine->name), obstacle);
      all.make.push_back(std::move(make));
      all.configurations.push_back(n);
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      configurations[n].error = error.what();
    }
  }
  return all;
}

}  // namespace kvs::inline compare
