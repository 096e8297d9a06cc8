#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "model/config.h"

namespace kvs {

class GgufFile;
class GgufKeys;

/// What an architecture's configs leave unsaid about RoPE: part of its row in the architecture table.
struct RopeDefaults {
  double theta = 10000;
  std::string_view theta_key = "rope_theta";  // config.json key of the base
  /// Gemma 3: layers with a window have a RoPE of their own with this base, without scaling; 0: all layers are alike.
  double window_theta = 0;
  /// config.json key of the share of a head's channels that turn; empty: Transformers turns whole heads whatever a
  /// config says, so another share is refused.
  std::string_view share_key = "";
  double share = 1;             // where the key is missing
  double original_context = 0;  // Phi-3: original_max_position_embeddings where that key is missing
  bool su_is_longrope = false;  // Phi-3: "su" and "yarn" are old names of longrope
};

/// Fills `ropes` and `layer_ropes` from config.json: rope_theta beside rope_scaling (Transformers 4) or all of it in
/// rope_parameters (5), there per type of layer for Gemma 3. `config` has its head_dim, layers, windows and context.
/// An odd number n of rotated channels is n + 1 with other exponents in Transformers: their base is changed to fit,
/// which `notes` says.
/// @throws Error kInput with the JSON pointer, kUnsupported by name.
void parse_hf_rope(const JsonCursor& root, const RopeDefaults& defaults, ModelConfig& config,
                   std::vector<std::string>& notes);

/// The same from GGUF metadata (rope.*, as llama.cpp reads them) and the tensors rope_freqs, rope_factors_long and
/// rope_factors_short.
/// @param keys  the file's, of its architecture
void parse_gguf_rope(const GgufFile& file, const GgufKeys& keys, const RopeDefaults& defaults, ModelConfig& config);

/// Of a model whose layers with a window have a RoPE of their own: `ropes` = {full, windowed}, each layer has its own.
void set_window_rope(ModelConfig& config, const RopeParameters& full, const RopeParameters& windowed);

}  // namespace kvs
