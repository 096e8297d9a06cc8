#pragma once

#include <span>
#include <vector>

#include "calibrate/elitekv/attention_statistics.h"
#include "calibrate/elitekv/source.h"
#include "kernels/calibration_ops.h"
#include "model/model.h"

namespace kvs {

/// What factors are made of.
struct FactorInput {
  const ModelSource& source;
  CalibrationOps& ops;
  std::span<const double>
      moments;  // [layer, d_model, d_model]: Σ x xᵀ over the tokens; empty: the config does not whiten
  std::size_t tokens = 0;
  const AttentionStatistics* attention = nullptr;  // read if the config fits queries

  /// Of the layer at position `n`.
  std::span<const double> second_moment(std::size_t n) const {
    const std::size_t size = moments.empty() ? 0 : source.config().d_model * source.config().d_model;
    return moments.subspan(n * size, size);
  }
};

/// S-LRD's ranks of the layer at position `n` of `config`, the next without any, and its singular values, which tell
/// them: both are added to the config.
void add_shared_ranks(const FactorInput& input, std::size_t n, EliteConfig& config);

/// The tensors of the layer at position `n`, in the order of the file, without their values. S-LRD: the config has its
/// ranks.
std::vector<FactorTensor> planned_factors(const ModelSource& source, std::size_t n, const EliteConfig& config);

/// Factorises the layer at position `n` of `config` as it says (joint, split, rank, S-LRD's ranks). J-LRD: adds its
/// singular values to the config.
/// @return planned_factors() with their values
std::vector<FactorTensor> factorise_layer(const FactorInput& input, std::size_t n, EliteConfig& config);

/// The largest rank that can be asked for with r elite chunks: full rank.
std::size_t full_rank(const ModelConfig& model, std::size_t r, bool joint) noexcept;

}  // namespace kvs
