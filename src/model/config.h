#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/arithmetic.h"

namespace kvs {

/// Geometry and constants of one model, whatever file they came from.
struct ModelConfig {
  std::string name;          // general.name, or the folder's name
  std::string architecture;  // the row of the architecture table, e.g. "llama"
  std::size_t layers = 0, d_model = 0, d_ff = 0, query_heads = 0, kv_heads = 0, head_dim = 0;
  std::size_t vocabulary = 0, context = 0;
  float norm_epsilon = 0;
  double rope_theta = 0;
  std::string rope_scaling = "null";     // JSON text of the scaling parameters
  std::vector<double> rope_frequencies;  // [head_dim / 2] radians per token after scaling, rounded to f32 as HF does
  bool tied_head = false;
  Arithmetic arithmetic = {};
  float attention_scale = 0;              // multiplies q·k; 0: 1 / sqrt(head_dim)
  float attention_softcap = 0;            // 0: none (AttentionInput)
  float logit_softcap = 0;                // 0: none
  std::vector<std::size_t> windows = {};  // [layer] positions that attention reads, 0: all; empty: all in every layer

  std::size_t group() const noexcept { return query_heads / kv_heads; }
  std::size_t chunks() const noexcept { return head_dim / 2; }
  std::size_t window(std::size_t layer) const noexcept { return windows.empty() ? 0 : windows[layer]; }
  /// Reals of the full cache per token: 2 · kv_heads · head_dim · layers.
  std::size_t cache_reals_per_token() const noexcept { return 2 * kv_heads * head_dim * layers; }
};

}  // namespace kvs
