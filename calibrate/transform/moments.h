// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/common/attention_pairs.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// The sizes of a layer that the transform coder codes.
struct TransformHeads {
  std::size_t query_heads = 0, kv_heads = 0, head_dim = 0;

  std::size_t values() const noexcept { return 2 * kv_heads * head_dim; }
  std::size_t group() const noexcept { return query_heads / kv_heads; }
  /// Number of products of the channels of a head.
  std::size_t square() const noexcept { return head_dim * head_dim; }
};

/// Neighbouring layers that are coded as one row, by index in TransformGeometry::layers.
struct LayerGroup {
  std::size_t first = 0, count = 1;
};

/// The layers and tokens of a calibration of the transform coder.
struct TransformGeometry {
  std::vector<std::size_t> layers;      // ascending
  std::vector<TransformHeads> heads;    // [layer]
  std::size_t sinks = 0;                // first tokens of a document, which are not coded
  std::size_t recent = 0;               // TransformLayer::recent
  std::vector<LayerGroup> groups = {};  // of layers with equal heads, in order
  std::size_t inputs = 0;               // channels of the embeddings that rows are predicted from; 0: they are not
  std::size_t run = 1;                  // the rows that TransformMoments keeps are runs of so many tokens
  /// Above 0: each so-many-th document is not summed; all its rows are kept, and none of the others.
  std::size_t holdout = 0;

  /// Returns the values of a token in all layers.
  std::size_t values() const noexcept { return values_before(heads.size()); }
  /// Returns the values of a token in the layers before `layer`, by index.
  std::size_t values_before(std::size_t layer) const noexcept {
    std::size_t sum = 0;
    for (std::size_t n = 0; n < layer; ++n) sum += heads[n].values();
    return sum;
  }
  /// Returns the values of a token in the layers of a group.
  std::size_t values(const LayerGroup& group) const noexcept { return group.count * heads[group.first].values(); }
};

/// Returns groups of one layer each.
std::vector<LayerGroup> single_layers(std::size_t layers);

/// Sums over the tokens of a text, document by document. They are of rows x (a token's keys before RoPE of all heads,
/// then its values), and of the cost of their errors at the attention's output, to first order and as if errors were
/// independent between tokens. With attention weights p, values v and results o, an error ε of key j of query head h
/// costs Σ_i p_ij² ‖W_o,h (v_j − o_i)‖² (scale · R_i q_i · R_j ε)². An error ε of value j costs Σ_i p_ij² ‖W_o,h ε‖².
/// Queries that read key j while it still waits are left out: on average the first 3/2 · recent queries from j on. All
/// state is in vectors of doubles, so that a checkpoint can keep it.
class TransformMoments {
 public:
  /// Number of keys of a document in the sums of the keys' costs, evenly spaced, and of its rows that are kept, or one
  /// run if that is longer.
  static constexpr std::size_t kKeys = 32, kSamples = 32;

  /// @param geometry  without groups: each layer is one
  /// @param rules    [layer]
  /// @param outputs  W_oᵀ W_o of each query head: [layer][query_head, head_dim, head_dim]
  TransformMoments(TransformGeometry geometry, std::vector<ScoreRule> rules, std::vector<std::vector<double>> outputs);

  /// Adds one document of more than `sinks` tokens; all must have the same length. One visit of `source`. Calls may run
  /// in turns (turns/turns.h); the sums are those of whole documents when all of them have ended.
  void add(StateSource& source, std::size_t document);

  const TransformGeometry& geometry() const noexcept { return geometry_; }
  /// Σ x and Σ x xᵀ of layers that are all in one group of the geometry, and the number of tokens summed.
  std::span<const double> sum(const LayerGroup& layers) const {
    return std::span(sums_).subspan(geometry_.values_before(layers.first), geometry_.values(layers));
  }
  std::vector<double> outer(const LayerGroup& layers) const;
  double tokens() const noexcept { return counts_[0]; }
  /// Σ e eᵀ and Σ e xᵀ with e a token's embedding (the first layer's input), then 1, and x its values in all layers.
  std::span<const double> input_products() const noexcept { return input_products_; }
  std::span<const double> input_rows() const noexcept { return input_rows_; }
  /// Returns the costs of unit errors per token: [kv_head, head_dim, head_dim].
  std::vector<double> key_costs(std::size_t n) const;
  std::vector<double> value_costs(std::size_t n) const;
  /// Returns rows of the text in neighbouring layers, [token, value]: at least kSamples of each document, in evenly
  /// spaced runs, or those of the held-out documents.
  std::vector<float> samples(const LayerGroup& layers) const;
  std::size_t samples_of_document() const noexcept {
    return samples_.size() / static_cast<std::size_t>(counts_[2]) / geometry_.values();
  }
  /// Returns the embeddings of these rows' tokens, [token, channel].
  const std::vector<double>& input_samples() const noexcept { return input_samples_; }

  /// Returns the state for a checkpoint, in the order that restore() expects.
  std::vector<std::span<const double>> state() const;
  void restore(std::span<const std::vector<double>> state);

 private:
  using SizeOf = std::size_t (*)(const TransformHeads& heads);  // of a layer's part of a table
  static std::size_t squares_of(const TransformHeads& heads) { return heads.query_heads * heads.square(); }
  static std::size_t queries_of(const TransformHeads& heads) { return heads.query_heads; }

  /// Returns the size of a table's parts of the first `n` layers.
  std::size_t before(std::size_t n, SizeOf size) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += size(geometry_.heads[i]);
    return sum;
  }
  std::size_t all(SizeOf size) const { return before(geometry_.heads.size(), size); }
  std::span<const double> part(const std::vector<double>& sums, std::size_t n, SizeOf size) const {
    return std::span(sums).subspan(before(n, size), size(geometry_.heads[n]));
  }
  /// What one document leaves until the last layer of a group, or its last layer.
  struct Document {
    std::vector<double> samples;
    std::vector<std::vector<double>> rows = {};  // [layer of the current group][token, value]
    std::vector<double> inputs = {};             // [token, channel, then 1], without sinks
    std::vector<double> input_samples = {};
    bool summed = true;                     // false: held out
    std::vector<std::size_t> sampled = {};  // tokens whose rows are kept
  };
  void add_inputs(Backend& backend, const Operand& x, Document& document);
  void add_layer(Backend& backend, const DocumentStates& states, const RopeTable& table, std::size_t n,
                 Document& document);
  void add_products(std::size_t n, std::vector<double> rows, Document& document);
  /// Returns the index of the group of the layer at index `n`, and the size of the groups' tables before it.
  std::pair<std::size_t, std::size_t> group_of(std::size_t n) const;

  TransformGeometry geometry_;
  std::vector<ScoreRule> rules_;
  std::vector<std::vector<double>> outputs_;
  std::vector<double> sums_, outers_;  // [layer, value], [group, value, value]
  std::vector<double> keys_;           // [layer, query_head, head_dim, head_dim]
  std::vector<double> weights_;        // [layer, query_head]: Σ_j Σ_i p_ij²
  std::vector<double> counts_;         // tokens, keys, documents with samples
  std::vector<double> samples_;        // [document, layer, token, value]
  std::vector<double> input_products_, input_rows_, input_samples_;
};

}  // namespace kvs::inline calibrate
