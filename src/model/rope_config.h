// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "model/config.h"

namespace kvs::inline io {
class GgufFile;
}  // namespace kvs::inline io

namespace kvs::inline model {

class GgufKeys;

/// RoPE defaults of an architecture for missing config keys: part of its row in the architecture table.
struct RopeDefaults {
  double theta = 10000;
  std::string_view theta_key = "rope_theta";  // config.json key of the base
  /// Gemma 3: base of the RoPE of layers with a window, without scaling; 0: all layers use the same RoPE.
  double window_theta = 0;
  std::string_view window_theta_key = "rope_local_base_freq";  // config.json key of window_theta
  double proportional_share = 0;  // Gemma 4: of the chunks that rotate in full layers, if no scaling is stated
  /// config.json key of the share of a head's channels that are rotated; empty: Transformers always rotates whole
  /// heads, so another share in a config is refused.
  std::string_view share_key = "";
  double share = 1;                    // if the key is missing
  std::string_view channels_key = "";  // config.json key of the number of rotated channels; the share's key holds first
  double original_context = 0;         // Phi-3: default of original_max_position_embeddings
  bool su_is_longrope = false;         // Phi-3: "su" and "yarn" are old names of longrope
  bool fixed_alpha = false;          // Hunyuan: `alpha` of dynamic multiplies the base by alpha^(d / (d − 2)), always
  bool gguf_truncates = true;        // GGUF: the bounds of YaRN are rounded
  bool gguf_log_multiplier = false;  // GGUF: yarn_log_multiplier is mscale_all_dim, a weight of YaRN's temperature
  bool gguf_score_multiplier = false;  // GGUF: yarn_log_multiplier is a weight in the factor of scores instead
  std::string_view unsaid = {};        // rope_parameters, as JSON, of a config that lacks them
};

/// Returns the object of config.json with RoPE's scaling, or null. As in Transformers, an empty object does not hide
/// the other one.
JsonCursor scaling_object(const JsonCursor& root);

/// Fills `ropes` and the kind of each layer from config.json: rope_theta and rope_scaling (Transformers 4), or
/// rope_parameters (5), which Gemma 3 has per type of layer. `config` must have its layers and context. For an odd
/// number n of rotated channels, Transformers rotates n + 1 channels with other exponents. The base is changed to
/// match, and `notes` says so.
/// @throws Error kInput with the JSON pointer, kUnsupported by name.
void parse_hf_rope(const JsonCursor& root, const RopeDefaults& defaults, ModelConfig& config,
                   std::vector<std::string>& notes);

/// Like parse_hf_rope(), from GGUF metadata (rope.*, as llama.cpp reads them) and the tensors rope_freqs,
/// rope_factors_long and rope_factors_short.
/// @param keys  the file's keys, of its architecture
void parse_gguf_rope(const GgufFile& file, const GgufKeys& keys, const RopeDefaults& defaults, ModelConfig& config);

/// Returns the head size of the first layer with a window, or without one; of any layer if there is none.
std::size_t head_dim_of(const ModelConfig& config, bool windowed);

/// Gives the layers of `unrotated` a kind that rotates nothing.
void set_unrotated(ModelConfig& config, const std::vector<bool>& unrotated);

/// For a model whose layers with a window have their own RoPE: sets `ropes` to {full, windowed} and each layer's kind.
void set_window_rope(ModelConfig& config, const RopeParameters& full, const RopeParameters& windowed);

}  // namespace kvs::inline model
