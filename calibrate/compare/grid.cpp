// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/grid.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "calibrate/common/cache_size.h"
#include "calibrate/common/engine_pairs.h"
#include "model/cache_shape.h"
#include "results/comparison_words.h"

namespace kvs::inline compare {
namespace {

std::string needs_text(double share) { return text_of("needs %.3g %%", 100 * share); }

/// Returns a name with settings: "kivi, bits 4".
std::string with_settings(const std::string& method, const Json& settings) {
  std::string name = method;
  for (const auto& [key, value] : settings.items()) name += ", " + key + ' ' + value.dump();
  return name;
}

/// Returns the greatest number of KV heads of which every layer has a multiple.
std::size_t common_kv_heads(const ModelConfig& model) {
  std::size_t heads = 0;
  for (const std::size_t layer : model.cached_layers()) heads = std::gcd(heads, model.layer[layer].attention.kv_heads);
  return heads;
}

class ConfigurationMaker {
 public:
  ConfigurationMaker(const CompareGrid& grid, const ModelConfig& model)
      : grid_(grid), model_(model), shape_(cache_shape(model)) {}

  std::vector<Configuration> configurations(const std::function<void(std::size_t)>& progress) {
    for (std::size_t n = 0; n < grid_.methods.size(); ++n) {
      if (progress) progress(n);
      const Method& method = *find_method(grid_.methods[n]);
      for (const std::string& type : kv_types_of(grid_, method)) add(method, type);
    }
    return std::move(configurations_);
  }

 private:
  void add(const Method& method, const std::string& type) {
    CacheSizes sizes(method, shape_, grid_.tokens);
    const Json base = common_settings(grid_, method, type);
    if (const std::string obstacle = obstacle_of(method, model_); !obstacle.empty())
      return configurations_.push_back({.label = configuration_label(std::string(method.name), type),
                                        .method = std::string(method.name),
                                        .type = type,
                                        .budget = grid_.budgets.front(),
                                        .error = obstacle});
    if (method.settings_for_share == nullptr) {
      if (method.fixed_settings == nullptr) return;
      for (const Json& fixed : method.fixed_settings(common_kv_heads(model_))) {
        if (fixed.empty() && type.empty()) continue;  // the full cache itself
        add_fixed(sizes, method, type, base, fixed);
      }
      return;
    }
    for (const double budget : grid_.budgets) add_sized(sizes, method, type, base, budget);
  }

  void add_fixed(CacheSizes& sizes, const Method& method, const std::string& type, const Json& base,
                 const Json& fixed) {
    Configuration one{configuration_label(with_settings(std::string(method.name), fixed), type),
                      std::string(method.name), type, 0, base};
    one.settings.update(fixed);
    double share = 0;
    try {
      share = static_cast<double>(sizes.total(one.settings)) / static_cast<double>(sizes.full());
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      one.error = error.what();
      one.budget = grid_.budgets.front();
      configurations_.push_back(std::move(one));
      return;
    }
    if (share >= 1) return;
    one.share = share;
    one.budget = min_holding(grid_.budgets, share);
    if (one.budget == 0) {
      one.budget = grid_.budgets.front();
      one.needs = share;
      one.error = needs_text(share);
    }
    configurations_.push_back(std::move(one));
  }

  void add_sized(CacheSizes& sizes, const Method& method, const std::string& type, const Json& base, double budget) {
    Configuration one{configuration_label(std::string(method.name), type), std::string(method.name), type, budget,
                      base};
    const auto full = static_cast<double>(sizes.full());
    try {
      const std::optional<Json> fitted = sizes.fitted(base, static_cast<std::size_t>(budget * full));
      if (fitted && keeps_everything(method, *fitted, grid_.tokens))
        return;  // the storage type alone reaches the budget
      if (fitted) {
        one.settings = *fitted;
      } else {
        one.needs = static_cast<double>(sizes.least(base)) / full;
        one.error = needs_text(one.needs);
      }
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      one.error = error.what();
    }
    configurations_.push_back(std::move(one));
  }

  const CompareGrid& grid_;
  const ModelConfig& model_;
  CacheShape shape_;
  std::vector<Configuration> configurations_;
};

}  // namespace

double min_holding(std::span<const double> budgets, double share) {
  const auto holds =
      std::ranges::find_if(budgets.rbegin(), budgets.rend(), [&](double budget) { return share <= budget; });
  return holds == budgets.rend() ? 0 : *holds;
}

std::string configuration_label(const std::string& method, const std::string& type) {
  if (type.empty()) return method;
  return method == "full" ? type : method + " + " + type;
}

std::vector<Configuration> grid_configurations(const CompareGrid& grid, const ModelConfig& model,
                                               const std::function<void(std::size_t)>& progress) {
  return ConfigurationMaker(grid, model).configurations(progress);
}

std::vector<std::string> kv_types_of(const CompareGrid& grid, const Method& method) {
  std::vector<std::string> types{""};
  const auto& kinds = method.name == "full" ? grid.types : grid.composed;
  if (method.takes_kv_type) types.insert(types.end(), kinds.begin(), kinds.end());
  return types;
}

Json common_settings(const CompareGrid& grid, const Method& method, const std::string& type) {
  Json settings = kv_type_settings(type);
  if (method.takes_kv_type) settings.update(grid.settings);
  if (method.prefill == Prefill::kWhole) settings["prefix"] = grid.prefix;
  return settings;
}

bool keeps_everything(const Method& method, const Json& settings, std::size_t tokens) {
  return with_greatest_size(method, tokens, settings) == settings;
}

}  // namespace kvs::inline compare
