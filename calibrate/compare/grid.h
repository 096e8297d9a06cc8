// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/registry.h"
#include "core/error.h"
#include "model/config.h"

namespace kvs::inline compare {

/// One cache of a comparison: a method with a storage type at a budget.
struct Configuration {
  std::string label;      // "lagkv + q8_0"
  std::string method;     // of all_methods(), or elitekv
  std::string type = {};  // as in --types; empty: the method's own rows
  /// Share of the full cache's bytes. For a config that has run: the smallest budget that holds it. 0: unknown.
  double budget = 0;
  Json settings = Json::object();
  std::string config = {};  // file with the method's other parameters
  CacheForm form = CacheForm::kInAttention;
  std::vector<std::string> engines = {};  // that execute it
  std::string error = {};                 // why the configuration has no settings
  double needs = 0;                       // if the size is the error: the smallest share of the full cache's bytes
  double share = 0;                       // of the full cache's bytes, of a cache of one fixed size; 0: it has several
  bool calibrated = false;                // settings were chosen on a text
  std::size_t shared_bytes = 0;           // shared by all sequences, in addition to the bytes of each
  std::size_t calibration_documents = 0;  // documents of this calibration text that they were chosen on
};

/// The axes of a comparison.
struct CompareGrid {
  std::vector<std::string> methods = {};  // names of all_methods()
  // Each type is KIND, or KIND/KIND for keys and values:
  std::vector<std::string> types = {};     // of the full cache
  std::vector<std::string> composed = {};  // of all other methods that keep rows
  Json settings = Json::object();          // of all methods whose rows take a storage type
  std::vector<double> budgets = {};        // descending shares of the full cache's bytes
  std::size_t tokens = 0;                  // per document
  std::size_t prefix = 0;                  // for methods that compress a prefix once
};

/// Returns true if a share of the full cache's bytes is at most `budget`, up to rounding.
constexpr bool is_within(double share, double budget) noexcept { return share <= budget * (1 + 1e-9); }
/// Returns true for errors that refuse settings. Lack of memory or a broken file is a different error.
inline bool is_refusal(const Error& error) noexcept {
  return error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kUnsupported;
}

/// Returns the smallest of `budgets` (descending) that is at least `share`, or 0 if none is.
double min_holding(std::span<const double> budgets, double share);
/// Returns "method + type".
std::string configuration_label(const std::string& method, const std::string& type);

/// Returns a configuration for each method, storage type and budget, with the settings that fill the budget
/// (CacheSizes::fitted) and defaults for other parameters. A cache of one fixed size (`full` with a storage type,
/// KIVI's bits, GQA's heads) gives one configuration, at the smallest budget that holds it. There is no configuration
/// for a cache that holds no fewer bytes than the full cache, or for a method whose storage type alone reaches the
/// budget.
/// @param progress  called with the number of methods whose configurations are sized
std::vector<Configuration> grid_configurations(const CompareGrid& grid, const ModelConfig& model,
                                               const std::function<void(std::size_t)>& progress = {});

/// Returns the storage types of a method's configurations. The first is none.
std::vector<std::string> kv_types_of(const CompareGrid& grid, const Method& method);
/// Returns the settings that all configurations of a method and storage type have in common.
Json common_settings(const CompareGrid& grid, const Method& method, const std::string& type);
/// Returns true if the settings give the method its maximum size, so that nothing of a document is dropped.
bool keeps_everything(const Method& method, const Json& settings, std::size_t tokens);

}  // namespace kvs::inline compare
