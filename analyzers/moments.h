// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "states/state_source.h"

namespace kvs::inline analyzers {

/// The sums of a layer. Heads are numbered across states: first those of k_pre and v, which may be coded together
/// ("whole" heads), then those of k_post.
struct MomentShape {
  /// Products of tokens up to 15 apart, for a transform of blocks of 16 tokens. Documents hold at least two blocks.
  static constexpr std::size_t kMaxLags = 16;

  StateSet states;  // any of k_pre, k_post, v
  std::size_t kv_heads = 0, head_dim = 0;
  bool queries = false;         // the source has q_pre
  std::size_t tokens = 0;       // of a document
  std::size_t first_token = 0;  // sink tokens before it are left out

  std::size_t counted() const noexcept { return tokens - first_token; }  // counted tokens of a document
  std::size_t lags() const noexcept { return std::clamp<std::size_t>(counted() / 2, 1, kMaxLags); }
  std::size_t heads() const noexcept { return states.size() * kv_heads; }
  std::size_t whole_heads() const noexcept { return heads() - states.count(StateKind::kKPost) * kv_heads; }
  /// Number of the state's first head.
  std::size_t first_head(StateKind state) const noexcept;
  std::size_t square() const noexcept { return head_dim * head_dim; }
  std::size_t triangle() const noexcept { return head_dim * (head_dim + 1) / 2; }
};

/// Sums over tokens [first_token, T) of all documents, in double. Products of pairs of heads are [head_dim, head_dim].
struct LayerMoments {
  explicit LayerMoments(const MomentShape& shape);

  std::vector<double> sum;    // [head, head_dim] Σ x
  std::vector<double> edges;  // [whole head, lag 1 …, (first, last), head_dim]: Σ of token lag − 1 from either end
  std::vector<double> pairs;  // [whole heads (i ≥ j)] Σ x_i x_jᵀ, pair (i, j) at i (i + 1) / 2 + j
  std::vector<double> rotated;  // [kv_head] Σ x xᵀ of k_post
  std::vector<double> lags;  // [whole head, lag 1 …] lower triangle of Σ_t (x_t x_{t+lag}ᵀ + x_{t+lag} x_tᵀ) / 2
  std::vector<double> queries;  // [kv_head, head_dim] Σ q², mean of a RoPE chunk's channels, summed over the group
};

/// Passes on another source's states and adds up moments, so that one pass also serves other analyses. Sums of single
/// documents, added in their order, do not depend on the number of threads or on the process. Values of sums() that are
/// saved after a document and passed to restore() continue with the same bits. Cost per layer and token: about (heads²
/// + 2 · lags · heads) head_dim² multiply-adds. Runs on the host.
class MomentSource final : public StateSource {
 public:
  /// @param layers  ascending; the layers that will be requested
  MomentSource(StateSource& inner, const MomentShape& shape, std::vector<std::size_t> layers);

  std::size_t documents() const noexcept override { return inner_->documents(); }
  std::size_t tokens() const noexcept override { return inner_->tokens(); }
  Backend& backend() const noexcept override { return inner_->backend(); }
  RopeTable rope(std::size_t layer) const override { return inner_->rope(layer); }
  /// Adds each layer after `sink` has received it. Visits may run in turns (turns/turns.h). If anything throws, the
  /// sums hold a part of the document.
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override;

  const MomentShape& shape() const noexcept { return shape_; }
  /// By index in `layers`.
  const std::vector<LayerMoments>& moments() const noexcept { return moments_; }
  std::vector<std::span<const double>> sums() const;
  /// @throws Error kInput if the sizes differ.
  void restore(std::span<const std::vector<double>> sums);
  /// Moves the sums out. The object must not be used afterwards.
  std::vector<std::vector<double>> take_sums();
  /// Adds the sums of the next documents. @throws like restore()
  void add(std::span<const std::vector<double>> sums);

 private:
  std::vector<std::vector<double>*> all_tables();
  void check_sizes(std::span<const std::vector<double>> sums);
  void add_states(const DocumentStates& states, LayerMoments& moments);
  void add_queries(const DocumentStates& states, LayerMoments& moments);

  StateSource* inner_;
  MomentShape shape_;
  std::vector<std::size_t> layers_;
  std::vector<LayerMoments> moments_;
};

/// Returns the bytes of the sums of `layers` layers.
double moment_bytes(const MomentShape& shape, std::size_t layers);
/// Returns the FLOPs of one document.
double moment_flops(const MomentShape& shape, std::size_t layers);

}  // namespace kvs::inline analyzers
