#pragma once

#include <span>
#include <vector>

#include "calibrate/attention_statistics.h"
#include "export/elite_source.h"
#include "kernels/calibration_ops.h"
#include "model/model.h"

namespace kvs {

/// Factorises the layer at position `n` of `config` as it says (joint, split, rank) and adds what comes of it to the
/// config's singular values and, for S-LRD, ranks.
/// @param second_moment  Σ x xᵀ over `tokens` inputs, or empty if the config does not whiten
/// @param attention  read if the config fits queries; else may be null
/// @return the tensors of elite_factors()
std::vector<FactorTensor> factorise_layer(const ModelSource& source, std::size_t n,
                                          std::span<const double> second_moment, std::size_t tokens,
                                          const AttentionStatistics* attention, CalibrationOps& ops,
                                          EliteConfig& config);

/// The largest rank that can be asked for with r elite chunks: full rank.
std::size_t full_rank(const ModelConfig& model, std::size_t r, bool joint) noexcept;

}  // namespace kvs
