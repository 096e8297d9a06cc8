// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/cost/cost_model.h"
#include "results/cost.h"

namespace kvs::inline calibrate {

/// The tables that a result has.
struct CostPlan {
  std::vector<std::size_t> tokens;  // lengths of texts: the tables' rows
  std::size_t cache_size = 4096;    // of FreqKV
  std::vector<std::size_t> lags;    // of LagKV
};

/// The tables of the methods' papers, for this geometry.
CostResult cost_result(const ModelConfig& model, const CostPlan& plan);

}  // namespace kvs::inline calibrate
