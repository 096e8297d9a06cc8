// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor_view.h"
#include "model/model.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// How a layer's scores become attention weights.
struct ScoreRule {
  float scale = 1;                // multiplies q·k
  float softcap = 0;              // above 0: scaled scores s become softcap · tanh(s / softcap)
  std::size_t window = 0;         // a query reads only the last `window` positions, including its own; 0: all
  std::vector<float> sinks = {};  // [query_head]: logits of keys without a value; or empty
  std::size_t chunk = 0;          // instead of a window: a query reads its own chunk of positions; 0: all
};

/// Returns the rule of a layer, without sinks.
ScoreRule score_rule(const ModelConfig& model, std::size_t layer);
/// Reads the sinks of the layers that have some. @param rules  [layer of `layers`]
/// @param source  nullptr: a capture's states, which hold neither sinks nor the scale, cap and windows of scores
/// @throws Error kUsage without a source in families that may have one of them, and like ModelTensors.
void read_sinks(std::span<ScoreRule> rules, std::span<const std::size_t> layers, const ModelConfig& model,
                const ModelSource* source);

/// Sums over the pairs of query and key of a text, each weighted by the attention between them.
struct AttentionPairs {
  /// Number of evenly spaced queries of a document (this project's choice): otherwise the sums are quadratic in tokens.
  static constexpr std::size_t kQueries = 64;

  /// Number of features of each pair: (t, a, b) for each chunk c, with score contributions t_c rotated, a_c unrotated,
  /// and b_c = q₂k₁ − q₁k₂ unrotated (the contribution after a quarter turn of q).
  static constexpr std::size_t features(std::size_t chunks) noexcept { return 3 * chunks; }

  /// Adds to gram[h] Σ_i Σ_j p_ij (f_ij − f̄_i)(f_ij − f̄_i)ᵀ over query heads h, features f and attention weights p,
  /// with f̄_i = Σ_j p_ij f_ij. To second order, half of it is the KL divergence of the weights when the scores change.
  /// Adds to mass[j] Σ_h Σ_i p_ij, scaled as if all queries had been used.
  /// @param states  with q_pre and k_pre
  /// @param gram    [query_head, features, features]
  /// @param mass    [token]
  static void add(DeviceMemory& device, const DocumentStates& states, const RopeTable& table, const ScoreRule& rule,
                  TensorView<double, 3> gram, std::span<double> mass);
};

}  // namespace kvs::inline calibrate
