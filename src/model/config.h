#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/arithmetic.h"
#include "model/rope_parameters.h"

namespace kvs::inline model {

/// Geometry and constants of one model, from any file format.
struct ModelConfig {
  std::string name;          // general.name, or the folder's name
  std::string architecture;  // row of the architecture table, e.g. "llama"
  std::size_t layers = 0, d_model = 0, d_ff = 0, query_heads = 0, kv_heads = 0, head_dim = 0;
  std::size_t vocabulary = 0, context = 0;
  float norm_epsilon = 0;
  std::vector<RopeParameters> ropes = {};      // [kind], all with one rotary_dim; kind 0: full-attention layers
  std::vector<std::uint8_t> layer_ropes = {};  // [layer] kind; empty: all layers have kind 0
  bool tied_head = false;
  Arithmetic arithmetic = {};
  float attention_scale = 0;              // multiplies q·k; 0: 1 / sqrt(head_dim)
  float attention_softcap = 0;            // 0: none (AttentionInput)
  float logit_softcap = 0;                // 0: none
  bool adjacent_pairs = false;            // ggml keeps the channels of this family's RoPE chunks next to each other
  std::vector<std::size_t> windows = {};  // [layer] positions that attention reads, 0: all; empty: all

  /// Returns true if `tokens` tokens at distinct positions exceed the model's training length.
  bool exceeds_context(std::size_t tokens) const noexcept { return context > 0 && tokens > context; }
  /// Returns the factor of q·k.
  float score_scale() const noexcept {
    return attention_scale > 0 ? attention_scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  }
  std::size_t group() const noexcept { return query_heads / kv_heads; }
  std::size_t window(std::size_t layer) const noexcept { return windows.empty() ? 0 : windows[layer]; }
  std::size_t rope_kind(std::size_t layer) const noexcept { return layer_ropes.empty() ? 0 : layer_ropes[layer]; }
  const RopeParameters& rope(std::size_t layer) const noexcept { return ropes[rope_kind(layer)]; }
  /// Number of channels of a head that RoPE rotates; channels from here to head_dim are never rotated.
  std::size_t rotary_dim() const noexcept { return ropes.empty() ? head_dim : ropes.front().rotary_dim; }
  /// Number of RoPE chunks of a head: chunk c = channels (c, c + chunks()).
  std::size_t chunks() const noexcept { return rotary_dim() / 2; }
  /// Returns the number of tokens of a text in the full caches of all layers; a sliding window limits it.
  std::size_t cached_tokens(std::size_t tokens) const noexcept {
    std::size_t sum = 0;
    for (std::size_t layer = 0; layer < layers; ++layer)
      sum += window(layer) == 0 || window(layer) > tokens ? tokens : window(layer);
    return sum;
  }
  /// Values of the full cache per token: 2 · kv_heads · head_dim · layers.
  std::size_t cache_values_per_token() const noexcept { return 2 * kv_heads * head_dim * layers; }
};

}  // namespace kvs::inline model
