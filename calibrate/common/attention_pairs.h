#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor_view.h"
#include "states/state_source.h"

namespace kvs {

/// How a layer's scores become attention weights.
struct ScoreRule {
  float scale = 1;         // multiplies q·k
  float softcap = 0;       // above 0: scaled scores s become softcap · tanh(s / softcap)
  std::size_t window = 0;  // a query reads only the last `window` positions, its own included; 0: all of them
};

/// What attention sees of a text: sums over the pairs of query and key, each weighed by the attention between them.
struct AttentionPairs {
  /// Queries of a document that are looked at, evenly spaced (ours): the sums are quadratic in tokens otherwise.
  static constexpr std::size_t kQueries = 64;

  /// Of chunk c, with score contributions t_c rotated, a_c unrotated and b_c = q₂k₁ − q₁k₂ unrotated (what a quarter
  /// turn of q would make of it): the features (t, a, b), 3 · chunks of them, of each pair.
  static constexpr std::size_t features(std::size_t chunks) noexcept { return 3 * chunks; }

  /// gram[h] += Σ_i Σ_j p_ij (f_ij − f̄_i)(f_ij − f̄_i)ᵀ over query heads h, features f and attention weights p, f̄_i =
  /// Σ_j p_ij f_ij: half of what a change of the scores costs the weights in KL divergence, to second order.
  /// mass[j] += Σ_h Σ_i p_ij, scaled as if all queries had been looked at.
  /// @param states  with q_pre and k_pre
  /// @param gram    [query_head, features, features]
  /// @param mass    [token]
  static void add(Backend& backend, const DocumentStates& states, const RopeTable& table, const ScoreRule& rule,
                  TensorView<double, 3> gram, std::span<double> mass);
};

}  // namespace kvs
