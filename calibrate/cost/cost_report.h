#pragma once

#include <string>
#include <vector>

#include "calibrate/cost/cost_model.h"
#include "io/json.h"

namespace kvs {

/// The tables that a report has.
struct CostPlan {
  std::vector<std::size_t> tokens;  // lengths of texts: the tables' rows
  std::size_t cache_size = 4096;    // of FreqKV
  std::vector<std::size_t> lags;    // of LagKV
};

/// What the methods' papers tabulate, for this geometry (docs/cost.md).
Json cost_json(const ModelConfig& model, const CostPlan& plan);
/// The same as tables.
std::string cost_text(const Json& report);

}  // namespace kvs
