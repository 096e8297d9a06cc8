// SPDX-License-Identifier: Apache-2.0
#include "model/hf_options.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/nearest.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

/// Keys that affect the computation in some class of Transformers. If a row does not read such a key, only a neutral
/// value is accepted: null, `on`, an empty list or object, or `number`.
struct ArithmeticKey {
  std::string_view name;
  double number;
  bool on = false;
};
constexpr std::array kArithmeticKeys{ArithmeticKey{"alibi", 0},
                                     ArithmeticKey{"attention_bias", 0},
                                     ArithmeticKey{"attention_multiplier", 0},
                                     ArithmeticKey{"attn_logit_softcapping", 0},
                                     ArithmeticKey{"clip_qkv", 0},
                                     ArithmeticKey{"embedding_multiplier", 1},
                                     ArithmeticKey{"final_logit_softcapping", 0},
                                     ArithmeticKey{"is_causal", 1, true},
                                     ArithmeticKey{"logit_scale", 1},
                                     ArithmeticKey{"logits_scaling", 1},
                                     ArithmeticKey{"mamba_proj_bias", 0},
                                     ArithmeticKey{"mlp_bias", 0},
                                     ArithmeticKey{"no_rope_layers", 0},
                                     ArithmeticKey{"num_experts", 0},
                                     ArithmeticKey{"num_local_experts", 0},
                                     ArithmeticKey{"per_layer_config", 0},
                                     ArithmeticKey{"projectors_bias", 0},
                                     ArithmeticKey{"qk_layernorm", 0},
                                     ArithmeticKey{"query_pre_attn_scalar", 0},
                                     ArithmeticKey{"residual_multiplier", 1},
                                     ArithmeticKey{"rope_interleaved", 0},
                                     ArithmeticKey{"sliding_window", 0},
                                     ArithmeticKey{"sliding_window_pattern", 0},
                                     ArithmeticKey{"use_bias", 0},
                                     ArithmeticKey{"use_bidirectional_attention", 0},
                                     ArithmeticKey{"use_cla", 0},
                                     ArithmeticKey{"use_parallel_residual", 0},
                                     ArithmeticKey{"use_qk_norm", 0},
                                     ArithmeticKey{"use_sliding_window", 0}};

/// Keys that are read for every row, or that do not affect a forward pass.
constexpr std::array<std::string_view, 66> kOtherKeys{"_attn_implementation",
                                                      "_attn_implementation_autoset",
                                                      "_name_or_path",
                                                      "_sliding_window_pattern",
                                                      "architectures",
                                                      "attention_dropout",
                                                      "attn_pdrop",
                                                      "auto_map",
                                                      "bos_token_id",
                                                      "cache_implementation",
                                                      "chunk_size_feed_forward",
                                                      "classifier_dropout",
                                                      "dtype",
                                                      "embd_pdrop",
                                                      "eos_token_id",
                                                      "finetuning_task",
                                                      "gradient_checkpointing",
                                                      "head_dim",
                                                      "hidden_act",
                                                      "hidden_activation",
                                                      "hidden_dropout",
                                                      "hidden_size",
                                                      "id2label",
                                                      "initializer_range",
                                                      "intermediate_size",
                                                      "is_decoder",
                                                      "is_encoder_decoder",
                                                      "is_llama_config",
                                                      "label2id",
                                                      "layer_norm_eps",
                                                      "layer_types",
                                                      "max_position_embeddings",
                                                      "max_window_layers",
                                                      "model_type",
                                                      "num_attention_heads",
                                                      "num_hidden_layers",
                                                      "num_key_value_heads",
                                                      "original_max_position_embeddings",
                                                      "output_attentions",
                                                      "output_hidden_states",
                                                      "pad_token_id",
                                                      "partial_rotary_factor",
                                                      "prefix",
                                                      "pretraining_tp",
                                                      "problem_type",
                                                      "quantization_config",
                                                      "resid_pdrop",
                                                      "return_dict",
                                                      "rms_norm_eps",
                                                      "rope_local_base_freq",
                                                      "rope_parameters",
                                                      "rope_scaling",
                                                      "rope_theta",
                                                      "rotary_emb_base",
                                                      "rotary_pct",
                                                      "sep_token_id",
                                                      "task_specific_params",
                                                      "tie_word_embeddings",
                                                      "tokenizer_class",
                                                      "torch_dtype",
                                                      "torchscript",
                                                      "transformers.js_config",
                                                      "transformers_version",
                                                      "unk_token_id",
                                                      "use_cache",
                                                      "vocab_size"};

bool neutral(const Json& value, const ArithmeticKey& key) {
  if (value.is_boolean()) return value.get<bool>() == key.on;
  if (value.is_number()) return value.get<double>() == key.number;
  return value.is_null() || (value.is_structured() && value.empty());
}

void append(std::string& list, const std::string& key) { list += (list.empty() ? "" : ", ") + printable(key, 80); }

/// Returns true if the windows depend on use_sliding_window.
bool is_switched(WindowRule rule) noexcept {
  return rule == WindowRule::kUpperLayers || rule == WindowRule::kSwitched || rule == WindowRule::kEvenLayers;
}

constexpr std::array<std::string_view, 4> kMultipliers{"attention_multiplier", "embedding_multiplier",
                                                       "residual_multiplier", "logits_scaling"};

bool is_expert_key(const Architecture& row, std::string_view key) {
  return row.experts != nullptr && std::ranges::find(row.experts->keys, key) != row.experts->keys.end();
}

bool is_recurrence_key(const Architecture& row, std::string_view key) {
  return row.recurrence != nullptr && std::ranges::find(row.recurrence->keys, key) != row.recurrence->keys.end();
}

bool reads(const Architecture& row, std::string_view key) {
  const ConfigKeys& keys = row.keys;
  if (!row.rope.channels_key.empty() && key == row.rope.channels_key) return true;
  if (key == "sliding_window") return row.windows != WindowRule::kNone && row.windows != WindowRule::kChunks;
  if (key == "use_sliding_window") return is_switched(row.windows);
  if (key.starts_with("no_rope_layer")) return row.unrotated == UnrotatedRule::kListed;
  if (is_expert_key(row, key) || is_recurrence_key(row, key)) return true;
  if (row.layers != nullptr && std::ranges::find(row.layers->keys, key) != row.layers->keys.end()) return true;
  if (keys.multipliers && std::ranges::find(kMultipliers, key) != kMultipliers.end()) return true;
  for (const std::string_view own :
       {keys.attention_bias, keys.output_bias, keys.mlp_bias, keys.qk_norm, keys.logit_scale, keys.parallel_residual,
        keys.unheeded, keys.clip, keys.window_pattern, keys.attention_scalar, keys.attention_softcap,
        keys.logit_softcap, keys.convolution_bias, keys.d_ff, keys.activation, keys.interleaved}) {
    if (!own.empty() && key == own) return true;
  }
  return false;
}

/// Returns the layers that do not rotate according to no_rope_layers, which may be empty, or its interval: [layer].
std::vector<bool> listed_unrotated(const JsonCursor& root, std::size_t layers) {
  constexpr std::string_view kLayers = "no_rope_layers";
  std::vector<bool> unrotated(layers);
  if (!root.has(kLayers) || root.at(kLayers).array_size() == 0) {
    const std::size_t interval = hf_count(root, "no_rope_layer_interval", kMaxLayers, kUnrotatedInterval);
    for (std::size_t layer = 0; layer < layers; ++layer) unrotated[layer] = (layer + 1) % interval == 0;
    return unrotated;
  }
  const JsonCursor list = root.at(kLayers);
  if (list.array_size() < layers) list.fail("a 0 or 1 for each of " + std::to_string(layers) + " layers");
  for (std::size_t layer = 0; layer < layers; ++layer) unrotated[layer] = list.at(layer).integer(0, 1) == 0;
  return unrotated;
}

/// Returns the layers with a window or a chunk according to layer_types: [layer]. Empty if the key is missing.
std::vector<bool> listed_layers(const JsonCursor& root, const Architecture& row, std::size_t layers) {
  if (!root.has("layer_types")) return {};
  const std::string_view local = row.windows == WindowRule::kChunks ? "chunked_attention" : "sliding_attention";
  const JsonCursor types = root.at("layer_types");
  if (types.array_size() != layers) types.fail("one type for each of " + std::to_string(layers) + " layers");
  std::vector<bool> windowed;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const JsonCursor type = types.at(layer);
    const std::string& name = type.string();
    const bool indexed = name == "indexed_attention" || name == "deepseek_sparse_attention";
    if (indexed && reads(row, "index_topk")) {  // all layers without a window
      windowed.push_back(false);
      continue;
    }
    if (name != "full_attention" && name != local) {
      throw Error(ErrorCode::kUnsupported, type.place(),
                  "found \"" + name.substr(0, 80) + "\", supported are: full_attention, " + std::string(local));
    }
    windowed.push_back(name == local);
  }
  return windowed;
}

/// Reads a period of layers, also as "LLLG": the last of each period has no window.
std::size_t pattern_period(const JsonCursor& pattern) {
  if (!pattern.value().is_string()) return static_cast<std::size_t>(pattern.integer(1, kMaxLayers));
  const std::string& letters = pattern.string();
  if (letters.empty() || letters.size() > kMaxLayers || letters.find('G') != letters.size() - 1 ||
      letters.find_first_not_of("LG") != std::string::npos)
    pattern.fail("a period of layers, or letters L and a last G");
  return letters.size();
}

/// Returns the layers with a window according to the other keys. @param window  0: none
std::vector<bool> ruled_layers(const JsonCursor& root, const Architecture& row, std::size_t layers,
                               std::size_t window) {
  std::vector<bool> windowed(layers, false);
  if (window == 0) return windowed;
  if (row.windows == WindowRule::kChunks) {
    windowed = listed_unrotated(root, layers);
    windowed.flip();
    return windowed;
  }
  std::size_t first = 0, period = 0;
  const std::size_t border =
      root.has("max_window_layers") ? root.at("max_window_layers").unsigned_integer(kMaxLayers) : 28;
  if (row.windows == WindowRule::kUpperLayers) first = border;
  if (row.windows == WindowRule::kEvenLayers) {
    for (std::size_t layer = 0; layer < std::min(border, layers); layer += 2) windowed[layer] = true;
    return windowed;
  }
  if (row.windows == WindowRule::kPattern) {
    const std::string_view key = row.keys.window_pattern;
    const bool given = !key.empty() && root.has(key);
    period = given ? pattern_period(root.at(key)) : row.window_period;
  }
  for (std::size_t layer = first; layer < layers; ++layer) windowed[layer] = period == 0 || (layer + 1) % period != 0;
  return windowed;
}

/// Returns the key of the size of windows or chunks.
std::string_view window_key(const Architecture& row) {
  return row.windows == WindowRule::kChunks ? "attention_chunk_size" : "sliding_window";
}

/// Returns the effective size of windows or chunks; 0: none.
std::size_t window_size(const JsonCursor& root, const Architecture& row) {
  if (row.windows == WindowRule::kNone) return 0;
  if (is_switched(row.windows) && !hf_switch(root, "use_sliding_window", false)) return 0;
  if (!root.value().contains(window_key(row))) return row.keys.window_default;
  const JsonCursor window = root.at(window_key(row));
  return window.is_null() ? 0 : static_cast<std::size_t>(window.integer(1, static_cast<std::int64_t>(kMaxContext)));
}

struct ActivationName {
  std::string_view name;
  Activation activation;
};
/// Names of ACT2FN in Transformers. Several names of one function differ only in how the function is written there.
constexpr std::array kActivations{ActivationName{"silu", Activation::kSilu},
                                  ActivationName{"swish", Activation::kSilu},
                                  ActivationName{"gelu", Activation::kGeluErf},
                                  ActivationName{"gelu_python", Activation::kGeluErf},
                                  ActivationName{"gelu_pytorch_tanh", Activation::kGeluTanh},
                                  ActivationName{"gelu_new", Activation::kGeluTanh},
                                  ActivationName{"gelu_fast", Activation::kGeluTanh},
                                  ActivationName{"gelu_accurate", Activation::kGeluTanh},
                                  ActivationName{"gelu_python_tanh", Activation::kGeluTanh},
                                  ActivationName{"quick_gelu", Activation::kGeluSigmoid},
                                  ActivationName{"relu", Activation::kRelu}};

Activation named_activation(const JsonCursor& cursor) {
  const auto* const found = std::ranges::find(kActivations, std::string_view(cursor.string()), &ActivationName::name);
  if (found != kActivations.end()) return found->activation;
  std::vector<std::string> names;
  names.reserve(kActivations.size());
  for (const ActivationName& each : kActivations) names.emplace_back(each.name);
  throw Error(ErrorCode::kUnsupported, cursor.place(),
              "found " + describe_json(cursor.value()) + ", supported are: " + listed(names));
}

void note_unheeded(const JsonCursor& root, const Architecture& row, std::vector<std::string>& notes) {
  const std::string_view key = row.keys.unheeded;
  if (key.empty() || hf_switch(root, key, true)) return;
  notes.push_back(root.at(key).place() + ": found false, which " + std::string(row.hf_class) +
                  " does not heed in Transformers, and which has no effect");
}

}  // namespace

std::size_t hf_count(const JsonCursor& root, std::string_view key, std::uint64_t maximum, std::size_t missing) {
  if (missing != 0 && !root.has(key)) return missing;
  return static_cast<std::size_t>(root.at(key).integer(1, static_cast<std::int64_t>(maximum)));
}

std::string hf_place(const JsonCursor& root, std::string_view key) {
  return root.place() + (root.pointer().empty() ? ": /" : "/") + std::string(key);
}

void fail_hf_number(const JsonCursor& root, std::string_view key, std::size_t number, const std::string& expected) {
  const std::string found = root.has(key) ? "found " : "found nothing, which stands for ";
  throw Error(ErrorCode::kInput, hf_place(root, key), found + std::to_string(number) + ", expected " + expected);
}

bool hf_switch(const JsonCursor& root, std::string_view key, bool missing) {
  return !key.empty() && root.has(key) ? root.at(key).boolean() : missing;
}

double hf_positive(const JsonCursor& root, std::string_view key, double missing) {
  return root.has(key) ? root.at(key).positive_f32() : missing;
}

void check_hf_options(const JsonCursor& root, const Architecture& row, std::vector<std::string>& notes) {
  std::string unknown, not_finite;  // keys that affect the result are refused where they are read
  for (const std::string& key : root.keys()) {
    const auto* number = root.at(key).value().get_ptr<const double*>();
    if (number != nullptr && !std::isfinite(*number)) append(not_finite, key);
    const auto* found = std::ranges::find(kArithmeticKeys, key, &ArithmeticKey::name);
    if (found == kArithmeticKeys.end()) {
      if (std::ranges::find(kOtherKeys, key) != kOtherKeys.end() || key == row.keys.norm_epsilon || reads(row, key))
        continue;
      append(unknown, key);
      continue;
    }
    // No row reads the switch of bidirectional attention: every class here is a causal decoder.
    if (reads(row, key) || neutral(root.at(key).value(), *found)) continue;
    throw Error(ErrorCode::kUnsupported, root.at(key).place(),
                "found " + describe_json(root.at(key).value()) + ", which " + std::string(row.hf_class) +
                    " does not compute with here; expected the key to be absent or to change nothing");
  }
  note_unheeded(root, row, notes);
  if (!not_finite.empty()) notes.push_back(root.place() + ": NaN or infinity has no effect in: " + not_finite);
  if (!unknown.empty()) notes.push_back(root.place() + ": unknown keys have no effect: " + unknown);
}

std::vector<std::size_t> hf_windows(const JsonCursor& root, const Architecture& row, std::size_t layers) {
  const std::size_t window = window_size(root, row);
  const std::vector<bool> listed = listed_layers(root, row, layers), ruled = ruled_layers(root, row, layers, window);
  const bool fixed = row.windows == WindowRule::kNone || row.windows == WindowRule::kEveryLayer ||
                     row.windows == WindowRule::kSwitched;
  if (fixed && !listed.empty() && listed != ruled) {
    throw Error(ErrorCode::kUnsupported, root.at("layer_types").place(),
                "found layers of several types, supported are: layers alike, as sliding_window says, in " +
                    std::string(row.hf_class));
  }
  const std::vector<bool>& windowed = listed.empty() ? ruled : listed;
  std::vector<std::size_t> windows(layers, 0);
  if (std::ranges::find(windowed, true) == windowed.end()) return windows;
  if (window == 0)
    root.at("layer_types").fail("full_attention only, since no " + std::string(window_key(row)) + " is in force");
  for (std::size_t layer = 0; layer < layers; ++layer) windows[layer] = windowed[layer] ? window : 0;
  return windows;
}

std::vector<bool> unrotated_by_rule(const Architecture& row, const ModelConfig& config, bool windowed,
                                    std::size_t interval) {
  std::vector<bool> unrotated(config.layers(), false);
  const bool full =
      row.unrotated == UnrotatedRule::kFullLayers || (row.unrotated == UnrotatedRule::kFullIfWindowed && windowed);
  for (std::size_t layer = 0; layer < unrotated.size(); ++layer)
    unrotated[layer] =
        row.unrotated == UnrotatedRule::kListed ? (layer + 1) % interval == 0 : full && config.window(layer) == 0;
  return unrotated;
}

std::vector<bool> hf_unrotated(const JsonCursor& root, const Architecture& row, const ModelConfig& config) {
  constexpr std::string_view kPositions = "position_embedding_type";
  if (row.unrotated == UnrotatedRule::kUnlessStated)
    return std::vector<bool>(config.layers(), !root.has(kPositions) || root.at(kPositions).string() != "rope");
  if (row.unrotated != UnrotatedRule::kListed) return unrotated_by_rule(row, config, window_size(root, row) > 0);
  return listed_unrotated(root, config.layers());
}

Activation hf_activation(const JsonCursor& root, const Architecture& row) {
  const std::string_view key = row.keys.activation;
  const bool squared = row.arithmetic.activation == Activation::kReluSquared && root.has(key);
  if (squared && root.at(key).string() == "relu2") return Activation::kReluSquared;
  const Activation read = root.has(key) ? named_activation(root.at(key)) : row.arithmetic.activation;
  if (key != "hidden_act" && root.has("hidden_act") && named_activation(root.at("hidden_act")) != read) {
    throw Error(ErrorCode::kUnsupported, root.at("hidden_act").place(),
                "found another function than " + std::string(key) + " or its default says, which " +
                    std::string(row.hf_class) + " goes by; expected the same");
  }
  return read;
}

}  // namespace kvs::inline model
