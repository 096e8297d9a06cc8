#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "calibrate/registry.h"
#include "model/config.h"

namespace kvs {

/// One cache of a comparison: a method with a storage type at a budget.
struct CompareCell {
  std::string label;      // "lagkv + q8_0"
  std::string method;     // of all_methods(), or elitekv
  std::string type = {};  // as --types has it; empty: rows as they come
  double budget = 0;  // share of the full cache's bytes; of a config that has run the least that holds it; 0: unknown
  Json settings = Json::object();
  std::string config = {};       // a file that has the method's other parameters
  std::string error = {};        // why it has no settings
  double needs = 0;              // where that is its size, the least share of the full cache's bytes that it takes
  bool calibrated = false;       // its settings were chosen on a text
  std::size_t shared_bytes = 0;  // that all sequences share, beside those of each
  std::size_t calibration_documents = 0;  // of this comparison's calibration text, that they were chosen on
};

/// What is compared.
struct CompareGrid {
  std::vector<std::string> methods = {};  // names of all_methods()
  // Kinds, or KIND/KIND of keys and values:
  std::vector<std::string> types = {};     // of the full cache
  std::vector<std::string> composed = {};  // of every other method that keeps rows
  std::vector<double> budgets;             // descending shares of the full cache
  std::size_t tokens = 0;                  // of a document
  std::size_t prefix = 0;                  // of the methods that compress one, once
};

/// The smallest of `budgets` (descending) that is at least `share`; 0: none is.
double min_holding(std::span<const double> budgets, double share);
/// The parameters that hold rows as `type` says.
Json type_settings(const std::string& type);
/// "method + store".
std::string cell_label(const std::string& method, const std::string& type);

/// A cell for each method, storage type and budget with the settings that fill it (CacheSizes::fitted), the methods'
/// other parameters at their standards. What has one size alone (`full` with a storage type, KIVI's bits, GQA's heads)
/// is one cell, of the smallest budget that holds it; what holds no fewer bytes than the full cache is none, nor is a
/// method whose storage type alone reaches the budget.
std::vector<CompareCell> compare_cells(const CompareGrid& grid, const ModelConfig& model);

/// The storage types that a method's cells have; the first is none.
std::vector<std::string> kv_types_of(const CompareGrid& grid, const Method& method);
/// What all settings of a method with a storage type have in common.
Json common_settings(const CompareGrid& grid, const Method& method, const std::string& type);
/// Whether a method's settings are those of its greatest size: of a document nothing is left out.
bool keeps_everything(const Method& method, const Json& settings, std::size_t tokens);

}  // namespace kvs
