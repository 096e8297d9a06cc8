// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/common/attention_pairs.h"
#include "calibrate/oscar/rotations.h"
#include "core/tensor_view.h"
#include "kernels/calibration_ops.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// The target covariances of each KV head over a text, document by document: Σ q qᵀ of the queries after RoPE for keys,
/// and Σ o oᵀ of the attention's outputs o = Σ_j p_j v_j for values, over the query heads that read the KV head. The
/// latter is VᵀSᵀSV of the paper, with the attention weights S. Source: OSCAR, section 3. Deviations: the paper has one
/// rotation per layer; here each KV head has its own. The authors' code replaces SᵀS by the diagonal of k (QᵀQ) kᵀ.
/// All state is in vectors of doubles, so that a checkpoint can keep it.
class OscarSums {
 public:
  /// For the layers with a KV cache. @throws Error like read_sinks()
  explicit OscarSums(const ModelSource& source);

  /// Adds one document. One visit of `source`. Calls may run in turns (turns/turns.h).
  void add(StateSource& source, std::size_t document);
  /// Returns the rotations by layer. @throws Error kData if LAPACK does not converge
  std::vector<OscarRotations> rotations(CalibrationOps& ops) const;

  /// Returns the state for a checkpoint, in the order that restore() expects.
  std::vector<std::span<const double>> state() const;
  void restore(const std::vector<std::vector<double>>& state) { sums_ = state; }

 private:
  std::vector<std::size_t> indices_;       // of the layers
  std::vector<OscarRotations> layers_;     // without numbers
  std::vector<ScoreRule> rules_;           // [layer]
  std::vector<std::vector<double>> sums_;  // [layer] of keys, then of values: [kv_head, head_dim, head_dim]
};

/// Returns the bytes of the sums and of the rotations of a model.
double oscar_memory(const ModelConfig& model);

/// Returns U H P, row-major: the eigenvectors of `covariance` [n, n] by descending eigenvalue, times the normalised
/// Hadamard matrix in Sylvester's order, with the columns in bit-reversed order. If n is no power of two, eigenvector i
/// belongs to block i mod b of b blocks, and each block has a Hadamard matrix of the largest power of two that divides
/// n; the paper has powers of two only. The largest number of an eigenvector is positive, so that every program finds
/// the same.
/// Deviation: the authors' code sorts the eigenvectors by ascending eigenvalue before H and the columns by descending
/// eigenvalue in P. This changes the signs of columns and reverses the order of groups.
std::vector<float> oscar_rotation(CalibrationOps& ops, TensorView<const double, 2> covariance);

}  // namespace kvs::inline calibrate
