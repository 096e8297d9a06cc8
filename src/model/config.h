// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "model/arithmetic.h"
#include "model/rope_parameters.h"

namespace kvs::inline model {

/// The factor of the query at position p: 1 + scale · ln(1 + ⌊(p + shift) / length⌋).
struct QueryTemperature {
  float scale = 0;  // 0: none
  std::size_t length = 1, shift = 0;

  float at(std::size_t position) const noexcept {
    return 1 + scale * static_cast<float>(std::log(1.0 + static_cast<double>((position + shift) / length)));
  }
};

/// An index chooses the tokens that a query of latent attention reads (token_index.h).
struct TokenIndexConfig {
  std::size_t chosen = 0;          // tokens that a query reads at most; 0: no index
  std::size_t heads = 0, dim = 0;  // of the index's queries; keys have one head
  bool shared = false;             // the layer takes the choice of the last layer with an index of its own
};

/// Multi-head latent attention in its absorbed form: all query heads read one KV head, whose row is a key that rotates
/// and the latent, [head_dim − rank | rank] channels. A query's channels that do not rotate are mapped to the latent
/// with the head's W_k; its attention over latents is mapped to the head's values with W_v (latent_attention.h).
/// Source: DeepSeek-V2 (2024), arXiv:2405.04434, section 2.1 and appendix C.
struct LatentConfig {
  std::size_t rank = 0;        // channels of the latent; 0: heads have keys and values of their own
  std::size_t query_rank = 0;  // channels of the latent that queries come from; 0: they come from the layer's input
  std::size_t plain_dim = 0;   // channels of a query head that do not rotate
  std::size_t value_dim = 0;   // channels of a head's values
  TokenIndexConfig index = {};
};

/// The attention of one layer.
struct AttentionConfig {
  std::size_t query_heads = 0, kv_heads = 0, head_dim = 0;
  std::size_t window = 0;  // positions that a token reads, including its own; 0: all
  std::size_t chunk = 0;   // instead of a window: a token reads its own chunk of so many positions; 0: all
  std::size_t rope = 0;    // kind: index of ModelConfig::ropes
  float scale = 0;         // multiplies q·k; 0: 1 / sqrt(head_dim)
  float softcap = 0;       // 0: none (AttentionInput)
  float clip = 0;          // limit of |q|, |k| and |v| before RoPE, after QkNorm; 0: none
  bool sinks = false;      // a learned logit per query head (AttentionInput)
  QueryTemperature temperature = {};
  bool unit_norms = false;  // RMS of each head's rotated queries and keys, without gains (QkNorm)
  bool one_row = false;     // keys and values come from one row of each KV head, which is all that a cache must hold
  std::optional<std::size_t> kv_layer = {};  // the earlier layer whose keys and values it reads; none: its own
  LatentConfig latent = {};

  /// Returns the number of positions that a token reads at most; 0: all.
  std::size_t reach() const noexcept { return chunk > 0 ? chunk : window; }
  bool is_latent() const noexcept { return latent.rank > 0; }
  /// Channels of the key that all heads of a latent attention share.
  std::size_t shared_key_dim() const noexcept { return head_dim - latent.rank; }
  /// Returns the number of query heads that read one KV head.
  std::size_t group() const noexcept { return query_heads / kv_heads; }
  /// Returns the factor of q·k.
  float score_scale() const noexcept {
    return scale > 0 ? scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  }
  /// Values of the full cache per token: a key and a value of every KV head, or the row that both come from.
  std::size_t cache_values_per_token() const noexcept { return kv_layer ? 0 : (one_row ? 1 : 2) * kv_heads * head_dim; }
};

/// The experts of a sparse feed-forward block. A router scores all experts for a token; the token goes through the
/// `chosen` best, and their outputs are summed with weights.
struct ExpertsConfig {
  enum class Scores : std::uint8_t { kSoftmax, kSigmoid };

  std::size_t count = 0, chosen = 0;  // count 0: a dense block
  std::size_t d_ff = 0;               // of an expert
  std::size_t shared_d_ff = 0;        // of the expert that every token goes through; 0: none
  std::size_t latent = 0;             // channels of the chosen experts' inputs and outputs; 0: d_model
  Scores scores = Scores::kSoftmax;   // of the router's logits, over all experts
  bool normalised = false;            // the weights of the chosen experts are divided by their sum,
  float least_sum = 0;                // which counts as at least this
  SwigluClamp clamp = {};             // limit 0: the experts have the family's activation
  float scale = 1;                    // multiplies the weights
  /// Experts are chosen from the best `chosen_groups` of `groups` groups, by the sum of a group's `group_scores`
  /// largest scores.
  std::size_t groups = 1, chosen_groups = 1, group_scores = 2;
  bool scaled_inputs = false;  // the weights multiply the experts' inputs instead of their outputs
  bool beside_dense = false;   // the block's output is added to that of a dense block, each with norms of its own

  /// Returns the channels of an expert's input and output.
  std::size_t channels(std::size_t d_model) const noexcept { return latent > 0 ? latent : d_model; }
};

/// The feed-forward block of one layer.
struct FeedForwardConfig {
  std::size_t d_ff = 0;  // of a dense block
  float sparsity = 0;    // share of a dense block's gates that are cut to 0 if they are normally distributed; 0: none
  ExpertsConfig experts = {};

  bool is_sparse() const noexcept { return experts.count > 0; }
  /// Width of the networks that every token goes through: the dense one and the shared expert.
  std::size_t common_d_ff() const noexcept {
    return (is_sparse() && !experts.beside_dense ? 0 : d_ff) + experts.shared_d_ff;
  }
};

/// The recurrent block of one layer, which mixes tokens by a state of fixed size. A key head serves consecutive value
/// heads, equally many each. In Mamba-2 and by state-space duality, queries, keys and values are C, B and x.
struct RecurrenceConfig {
  enum class Kind : std::uint8_t {
    kNone,
    kDeltaNet,  // Gated DeltaNet
    kMamba2,
    kShortConvolution  // a gated convolution alone: one value head with all channels, no keys
  };

  Kind kind = Kind::kNone;
  std::size_t key_heads = 0, value_heads = 0, key_head_dim = 0, value_head_dim = 0;
  std::size_t kernel = 0;         // taps of the causal convolution, including the current token
  std::size_t norm_channels = 0;  // of the output's norm: channels with one mean; 0: no norm
  bool gate_first = false;        // the norm follows the gate
  float least_step = 0, most_step = std::numeric_limits<float>::infinity();  // Mamba-2
  bool tiled_heads = false;  // value head i reads key head i mod key_heads, as GGUF files of Qwen 3.5 store them

  std::size_t key_rows() const noexcept { return key_heads * key_head_dim; }
  std::size_t value_rows() const noexcept { return value_heads * value_head_dim; }
  /// Channels of the convolution: queries, keys and values.
  std::size_t channels() const noexcept { return 2 * key_rows() + value_rows(); }
  std::size_t state_values() const noexcept {
    return kind == Kind::kNone ? 0 : value_heads * key_head_dim * value_head_dim + (kernel - 1) * channels();
  }
};

/// The blocks of one layer. A block whose sizes are 0 is absent.
struct LayerConfig {
  AttentionConfig attention;  // query_heads 0: the layer has neither attention nor a KV cache
  RecurrenceConfig recurrence = {};
  FeedForwardConfig feed_forward;

  bool has_attention() const noexcept { return attention.query_heads > 0; }
  bool has_recurrence() const noexcept { return recurrence.kind != RecurrenceConfig::Kind::kNone; }
  bool has_feed_forward() const noexcept { return feed_forward.d_ff > 0 || feed_forward.is_sparse(); }
  /// Values of the state of the layer's recurrent block, which does not grow with the tokens.
  std::size_t recurrent_values() const noexcept { return recurrence.state_values(); }
  /// Returns true if the layer has keys and values of its own.
  bool has_cache() const noexcept { return has_attention() && !attention.kv_layer; }
};

/// Residual streams side by side (AltUp).
struct StreamsConfig {
  std::size_t count = 1;
  bool scaled = false;  // the first stream is multiplied channel by channel before it gates a layer's own input
};

/// Geometry and constants of one model, from any file format.
struct ModelConfig {
  std::string name;          // general.name, or the folder's name
  std::string architecture;  // row of the architecture table, e.g. "llama"
  std::vector<LayerConfig> layer;
  std::size_t d_model = 0, vocabulary = 0, context = 0;
  float norm_epsilon = 0;
  std::vector<RopeParameters> ropes = {};  // [kind]; kind 0: full-attention layers
  bool tied_head = false;
  Arithmetic arithmetic = {};
  std::size_t layer_inputs = 0;            // width of the input that each layer has of its own; 0: none
  std::size_t layer_input_vocabulary = 0;  // of the embeddings that it comes from
  bool layer_input_for_others = false;     // tokens beyond that vocabulary have the first token's
  StreamsConfig streams = {};
  std::size_t laurel_rank = 0;  // of a map parallel to each attention block; 0: none
  float logit_softcap = 0;      // 0: none
  float embedding_scale = 1;    // multiplies token embeddings
  float residual_scale = 1;     // multiplies the output of each block
  float logit_scale = 1;        // multiplies the logits
  bool adjacent_pairs = false;  // ggml keeps the channels of this family's RoPE chunks next to each other

  std::size_t layers() const noexcept { return layer.size(); }
  /// Returns true if `tokens` tokens at distinct positions exceed the model's training length.
  bool exceeds_context(std::size_t tokens) const noexcept { return context > 0 && tokens > context; }

  /// Returns the ascending indices of the layers with attention.
  std::vector<std::size_t> attention_layers() const { return layers_that(&LayerConfig::has_attention); }
  /// Returns the ascending indices of the layers with a KV cache of their own.
  std::vector<std::size_t> cached_layers() const { return layers_that(&LayerConfig::has_cache); }
  /// Returns the ascending indices of the other layers.
  std::vector<std::size_t> layers_without_cache() const {
    return layers_that([](const LayerConfig& each) { return !each.has_cache(); });
  }
  /// Returns true if heads and their channels are as many in all layers with a KV cache, and as many channels rotate.
  bool has_equal_layers() const {
    return std::ranges::all_of(layer, [&](const LayerConfig& each) {
      const AttentionConfig &one = each.attention, &first = first_attention();
      return !each.has_cache() ||
             (one.query_heads == first.query_heads && one.kv_heads == first.kv_heads &&
              one.head_dim == first.head_dim && (ropes.empty() || ropes[one.rope].rotary_dim == rotary_dim()));
    });
  }
  /// Returns the attention of the first layer that has one.
  const AttentionConfig& first_attention() const noexcept {
    const auto first = std::ranges::find_if(layer, &LayerConfig::has_attention);
    return (first == layer.end() ? layer.front() : *first).attention;
  }

  // Sizes that all layers with attention have in common.
  std::size_t query_heads() const noexcept { return first_attention().query_heads; }
  std::size_t kv_heads() const noexcept { return first_attention().kv_heads; }
  std::size_t head_dim() const noexcept { return first_attention().head_dim; }
  std::size_t group() const noexcept { return first_attention().group(); }
  float score_scale() const noexcept { return first_attention().score_scale(); }
  std::size_t d_ff() const noexcept { return layer.front().feed_forward.d_ff; }

  /// Returns true if a later layer reads the keys and values of this one.
  bool is_read(std::size_t index) const noexcept {
    return std::ranges::any_of(layer, [&](const LayerConfig& each) { return each.attention.kv_layer == index; });
  }
  /// Returns true if some layer reads another layer's keys and values.
  bool has_readers() const noexcept {
    return std::ranges::any_of(layer, [](const LayerConfig& each) { return each.attention.kv_layer.has_value(); });
  }

  /// Returns true if some layer has experts.
  bool has_experts() const noexcept {
    return std::ranges::any_of(layer, [](const LayerConfig& each) { return each.feed_forward.is_sparse(); });
  }

  /// Returns true if some layer has latent attention.
  bool has_latents() const noexcept {
    return std::ranges::any_of(layer, [](const LayerConfig& each) { return each.attention.is_latent(); });
  }
  /// Returns true if in some layer an index chooses the tokens that a query reads.
  bool has_index() const noexcept {
    return std::ranges::any_of(layer, [](const LayerConfig& each) { return each.attention.latent.index.chosen > 0; });
  }
  /// Returns true if some layer has a recurrent block.
  bool has_recurrence() const noexcept { return std::ranges::any_of(layer, &LayerConfig::has_recurrence); }
  /// Values of the states of all recurrent blocks, for a text of any length.
  std::size_t recurrent_values() const noexcept {
    std::size_t sum = 0;
    for (const LayerConfig& each : layer) sum += each.recurrent_values();
    return sum;
  }

  /// Returns the number of positions that a token of a layer reads at most, by a window or a chunk; 0: all.
  std::size_t window(std::size_t index) const noexcept { return layer[index].attention.reach(); }
  bool has_windows() const noexcept {
    return std::ranges::any_of(layer, [](const LayerConfig& each) { return each.attention.reach() != 0; });
  }
  /// Returns true if some layer attends within chunks.
  bool has_chunks() const noexcept {
    return std::ranges::any_of(layer, [](const LayerConfig& each) { return each.attention.chunk != 0; });
  }
  const RopeParameters& rope(std::size_t index) const noexcept { return ropes[layer[index].attention.rope]; }
  /// Returns the number of layers whose attention does not rotate queries and keys.
  std::size_t unrotated_layers() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(layer, [&](const LayerConfig& each) {
      return each.has_attention() && !ropes.empty() &&
             ropes[each.attention.rope].scaling.type == RopeScaling::Type::kNone;
    }));
  }
  /// Number of channels of a head that RoPE rotates; channels from here to head_dim are never rotated.
  std::size_t rotary_dim() const noexcept { return ropes.empty() ? head_dim() : ropes.front().rotary_dim; }
  /// Returns rotary_dim() of a layer.
  std::size_t rotary_dim(std::size_t index) const noexcept {
    return ropes.empty() ? head_dim() : rope(index).rotary_dim;
  }
  /// Number of RoPE chunks of a head: chunk c = channels (c, c + chunks()).
  std::size_t chunks() const noexcept { return rotary_dim() / 2; }
  /// Returns the number of tokens of a text in the full caches of all layers; windows and chunks limit it.
  std::size_t cached_tokens(std::size_t tokens) const noexcept {
    std::size_t sum = 0;
    for (const LayerConfig& each : layer) {
      if (!each.has_cache()) continue;
      const std::size_t reach = each.attention.reach();
      sum += reach == 0 ? tokens : std::min(tokens, reach);
    }
    return sum;
  }
  /// Values of the full cache of all layers per token; 0 for a layer without a cache.
  std::size_t cache_values_per_token() const noexcept {
    std::size_t sum = 0;
    for (const LayerConfig& each : layer) sum += each.attention.cache_values_per_token();
    return sum;
  }
  /// Values of the full caches of all layers for a text of `tokens` tokens; windows and chunks limit a layer's.
  std::size_t cache_values(std::size_t tokens) const noexcept {
    std::size_t sum = 0;
    for (const LayerConfig& each : layer)
      sum += each.attention.cache_values_per_token() *
             (each.attention.reach() == 0 ? tokens : std::min(tokens, each.attention.reach()));
    return sum;
  }

 private:
  template <class Has>
  std::vector<std::size_t> layers_that(Has has) const {
    std::vector<std::size_t> indices;
    for (std::size_t index = 0; index < layers(); ++index)
      if (std::invoke(has, layer[index])) indices.push_back(index);
    return indices;
  }
};

/// "3 of 36 attention layers rotate no channel".
inline std::string unrotated_text(const ModelConfig& model) {
  return std::to_string(model.unrotated_layers()) + " of " + std::to_string(model.attention_layers().size()) +
         " attention layers rotate no channel";
}

}  // namespace kvs::inline model
