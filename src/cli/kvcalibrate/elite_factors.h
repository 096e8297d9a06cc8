#pragma once

#include <string>
#include <vector>

#include "calibrate/jlrd.h"
#include "io/json.h"
#include "io/safetensors_writer.h"
#include "model/model.h"

namespace kvs {

struct EliteFactorPlan {
  std::size_t rank = 0;  // d_ckv, or the budget d_ck + d_cv
  bool joint = true;
  SingularSplit split = SingularSplit::kUp;
};

/// The factors of all layers as they go into the file, and what the config says of them.
struct EliteFactors {
  std::vector<NamedTensor> tensors;
  Json singular_values = Json::array();  // by layer: all values, or {k, v}
  Json ranks = Json::array();            // by layer, S-LRD: [d_ck, d_cv]
};

/// Factorises one layer and appends the result.
/// @param elite          [kv_head][pick]
/// @param second_moment  Σ x xᵀ over `tokens` inputs for whitening, or empty
void factorise_layer(const ModelSource& source, std::size_t layer, const std::vector<std::vector<std::size_t>>& elite,
                     const EliteFactorPlan& plan, std::span<const double> second_moment, std::size_t tokens,
                     CalibrationOps& ops, EliteFactors& factors);

/// The largest rank that `plan` can ask for with r elite chunks: full rank.
std::size_t full_rank(const ModelConfig& model, std::size_t r, bool joint) noexcept;

}  // namespace kvs
