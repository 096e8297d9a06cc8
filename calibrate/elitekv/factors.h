// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "calibrate/elitekv/attention_statistics.h"
#include "calibrate/elitekv/source.h"
#include "kernels/calibration_ops.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// The input of the factorisation.
struct FactorInput {
  const ModelSource& source;
  CalibrationOps& ops;
  std::span<const double> moments;  // [layer, d_model, d_model]: Σ x xᵀ over the tokens; empty: no whitening
  std::size_t tokens = 0;
  const AttentionStatistics* attention = nullptr;  // read if the config fits queries

  /// Returns the second moment of the layer at index `n`.
  std::span<const double> second_moment(std::size_t n) const {
    const std::size_t size = moments.empty() ? 0 : source.config().d_model * source.config().d_model;
    return moments.subspan(n * size, size);
  }
};

/// Adds S-LRD's ranks of the layer at index `n` of `config`, which must be the next one without ranks, and the singular
/// values from which they follow.
void add_shared_ranks(const FactorInput& input, std::size_t n, EliteConfig& config);

/// Returns the tensors of the layer at index `n`, in the order of the file, without values. For S-LRD, the config must
/// have its ranks.
std::vector<FactorTensor> planned_factors(const ModelSource& source, std::size_t n, const EliteConfig& config);

/// Factorises the layer at index `n` of `config` according to the config (joint, split, rank, S-LRD's ranks). For
/// J-LRD, adds the layer's singular values to the config.
/// @return planned_factors() with values
std::vector<FactorTensor> factorise_layer(const FactorInput& input, std::size_t n, EliteConfig& config);

/// Returns the largest possible rank with r elite chunks: full rank.
std::size_t full_rank(const ModelConfig& model, std::size_t r, bool joint) noexcept;

}  // namespace kvs::inline calibrate
