// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "io/file.h"
#include "io/python_json.h"
#include "model/checkpoints/checkpoints.h"
#include "model/composite.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

constexpr std::size_t kConfigBytes = 1UL << 20;

/// Classes differ in the meaning of a missing key; null means the number of query heads in all of them.
std::size_t kv_heads(const JsonCursor& root, const Architecture& row, std::size_t query_heads) {
  const std::string_view key = row.keys.kv_heads;
  if (key.empty()) return query_heads;
  if (root.has(key)) return hf_count(root, key, kMaxHeads);
  return root.value().contains(key) || row.keys.kv_heads_default == 0 ? query_heads : row.keys.kv_heads_default;
}

/// Reads the channels of a head; 0 means hidden_size / heads, which null means in all classes.
std::size_t head_dim(const JsonCursor& root, const ConfigKeys& keys) {
  if (root.has(keys.head_dim)) return hf_count(root, keys.head_dim, kMaxWidth);
  return root.value().contains(keys.head_dim) ? 0 : keys.head_dim_default;
}

const Architecture& row_of_class(const JsonCursor& root) {
  const JsonCursor classes = root.at("architectures");
  if (classes.array_size() == 0) classes.fail("the name of a class");
  const JsonCursor first = classes.at(std::size_t{0});
  return architecture_of_hf_class(first.string(), first.place());
}

/// Adds a note if `architectures` names another class than `row`'s.
void note_other_class(const JsonCursor& root, const Architecture& row, std::vector<std::string>& notes) {
  if (!root.has("architectures")) return;
  const JsonCursor classes = root.at("architectures");
  const bool listed = classes.value().is_array() && !classes.value().empty();
  const Json& first = listed ? classes.value().front() : classes.value();
  if (listed && (first == row.hf_class || first == row.hf_base_class)) return;
  notes.push_back(classes.place() + ": found " + describe_json(first) + "; model_type says " +
                  std::string(row.hf_class) + ", which holds, as in Transformers");
}

/// Transformers goes by model_type. The class is used if model_type is missing or unknown.
const Architecture& find_row(const JsonCursor& root, std::vector<std::string>& notes) {
  constexpr std::string_view kType = "model_type";
  const Architecture* row = root.has(kType) ? find_model_type(root.at(kType).string()) : nullptr;
  if (row == nullptr && !root.has("architectures"))
    return architecture_of_model_type(root.at(kType).string(), root.at(kType).place());
  if (row != nullptr) {
    note_other_class(root, *row, notes);
    return *row;
  }
  row = &row_of_class(root);
  if (root.has(kType))
    notes.push_back(root.at(kType).place() + ": found " + describe_json(root.at(kType).value()) +
                    ", which is not known; architectures says " + std::string(row->hf_class) + ", which holds");
  return *row;
}

/// Reads a soft cap: null means none, a missing key the class's default.
float softcap(const JsonCursor& root, std::string_view key, float otherwise) {
  if (key.empty() || !root.value().contains(key)) return otherwise;
  return root.at(key).is_null() ? 0 : static_cast<float>(root.at(key).positive_f32());
}

float positive(const JsonCursor& root, std::string_view key, float missing = 1) {
  return static_cast<float>(hf_positive(root, key, double{missing}));
}

/// Reads the arithmetic that differs from the row's own.
void parse_arithmetic(const JsonCursor& root, const Architecture& row, ModelConfig& config) {
  const ConfigKeys& keys = row.keys;
  config.arithmetic = row.arithmetic;
  config.arithmetic.activation = hf_activation(root, row);
  if (!keys.qk_norm.empty() && !hf_switch(root, keys.qk_norm, keys.qk_norm_default)) {
    config.arithmetic.qk_norm = QkNorm::kNone;
    config.arithmetic.norms_after_rope = false;
  }
  config.arithmetic.parallel_residual = hf_switch(root, keys.parallel_residual, row.arithmetic.parallel_residual);
  config.logit_softcap = softcap(root, keys.logit_softcap, keys.logit_softcap_default);
  if (!keys.logit_scale.empty()) config.logit_scale = positive(root, keys.logit_scale, keys.logit_scale_default);
  if (!keys.multipliers) return;
  config.embedding_scale = positive(root, "embedding_multiplier");
  config.residual_scale = positive(root, "residual_multiplier");
  config.logit_scale = 1 / positive(root, "logits_scaling");
}

/// Source: get_llama_4_attn_scale() in Transformers, which has no defaults.
QueryTemperature parse_temperature(const JsonCursor& root) {
  const JsonCursor rope = root.at(root.has("rope_scaling") ? "rope_scaling" : "rope_parameters");
  constexpr std::string_view kBeta = "llama_4_scaling_beta";
  return {.scale = rope.at(kBeta).real() == 0 ? 0 : static_cast<float>(rope.at(kBeta).positive_f32()),
          .length = hf_count(rope, "original_max_position_embeddings", kMaxContext,
                             hf_count(root, "max_position_embeddings", kMaxContext, kMaxContext))};
}

/// Reads what the attention of all layers has in common.
AttentionConfig parse_attention(const JsonCursor& root, const Architecture& row, std::size_t d_model) {
  const ConfigKeys& keys = row.keys;
  AttentionConfig attention;
  attention.query_heads = hf_count(root, "num_attention_heads", kMaxHeads, keys.query_heads_default);
  attention.kv_heads = kv_heads(root, row, attention.query_heads);
  attention.head_dim = head_dim(root, keys);
  complete_geometry(attention, d_model, root.place(),
                    {"hidden_size", "num_attention_heads", "num_key_value_heads", keys.head_dim});
  if (!keys.attention_scalar.empty()) {
    attention.scale = static_cast<float>(1 / std::sqrt(hf_positive(root, keys.attention_scalar, 256)));
  }
  if (keys.multipliers) attention.scale = positive(root, "attention_multiplier");
  attention.softcap = softcap(root, keys.attention_softcap, keys.attention_softcap_default);
  if (!keys.clip.empty() && root.has(keys.clip)) attention.clip = static_cast<float>(root.at(keys.clip).positive_f32());
  attention.sinks = keys.sinks;
  if (keys.query_temperature) attention.temperature = parse_temperature(root);
  return attention;
}

/// Reads the widths of dense blocks: one for all layers, or one for each.
std::vector<std::size_t> dense_widths(const JsonCursor& root, const ConfigKeys& keys, std::size_t layers) {
  if (!root.has(keys.d_ff) || !root.at(keys.d_ff).value().is_array())
    return std::vector<std::size_t>(layers, hf_count(root, keys.d_ff, kMaxWidth, keys.d_ff_default));
  const JsonCursor list = root.at(keys.d_ff);
  if (list.array_size() != layers) list.fail("a number, or one for each of " + std::to_string(layers) + " layers");
  std::vector<std::size_t> widths;
  for (std::size_t layer = 0; layer < layers; ++layer)
    widths.push_back(static_cast<std::size_t>(list.at(layer).integer(1, static_cast<std::int64_t>(kMaxWidth))));
  return widths;
}

void parse_feed_forward(const JsonCursor& root, const Architecture& row, std::vector<LayerConfig>& layers) {
  ExpertLayers all;
  if (row.experts != nullptr && row.experts->read != nullptr) all = row.experts->read(root, layers.size());
  all.sparse.resize(layers.size());
  const std::string_view width = row.keys.d_ff;
  const bool dense = std::ranges::find(all.sparse, false) != all.sparse.end();
  const std::vector<std::size_t> d_ff =
      dense || root.has(width) ? dense_widths(root, row.keys, layers.size()) : std::vector<std::size_t>(layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    layers[layer].feed_forward.d_ff = d_ff[layer];
    if (!all.sparse[layer]) continue;
    layers[layer].feed_forward.experts = all.experts;
    if (!all.chosen.empty()) layers[layer].feed_forward.experts.chosen = all.chosen[layer];
  }
}

/// Nemotron-H may state the layers' kinds only: in a list, or as letters.
std::size_t layer_count(const JsonCursor& root) {
  constexpr std::string_view kCount = "num_hidden_layers", kLayerKinds = "layers_block_type",
                             kLetters = "hybrid_override_pattern";
  const std::string_view kinds = root.has(kLayerKinds) ? kLayerKinds : kLetters;
  if (root.has(kCount) || !root.has(kinds)) return hf_count(root, kCount, kMaxLayers);
  const JsonCursor stated = root.at(kinds);
  const std::size_t layers = stated.value().is_string() ? stated.string().size() : stated.array_size();
  if (layers == 0 || layers > kMaxLayers) stated.fail("1 to " + std::to_string(kMaxLayers) + " kinds of layers");
  return layers;
}

void parse_layers(const JsonCursor& root, const Architecture& row, ModelConfig& config) {
  const std::size_t layers = layer_count(root);
  config.d_model = hf_count(root, "hidden_size", kMaxWidth);
  config.layer.assign(layers, {.attention = parse_attention(root, row, config.d_model), .feed_forward = {}});
  parse_feed_forward(root, row, config.layer);
  if (row.recurrence != nullptr) return;  // reads layer_types itself
  const std::vector<std::size_t> windows = hf_windows(root, row, layers);
  const bool chunks = row.windows == WindowRule::kChunks;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    AttentionConfig& attention = config.layer[layer].attention;
    (chunks ? attention.chunk : attention.window) = windows[layer];
  }
  if (row.layers != nullptr) row.layers->read(root, config);
}

/// Gives a config without RoPE's parameters those of its class.
void complete_rope(const Architecture& row, Json& language) {
  for (const char* const key : {"rope_parameters", "rope_scaling"})
    if (language.contains(key) && !language.at(key).is_null()) return;
  if (!row.rope.unsaid.empty()) language["rope_parameters"] = parse_json(row.rope.unsaid, row.name);
}

}  // namespace

ParsedConfig parse_hf_config(const std::filesystem::path& path) {
  const std::string where = path.string();
  Json json = parse_python_json(read_text_file(path, kConfigBytes), where, {.bytes = kConfigBytes, .depth = 64});
  const JsonCursor whole(json, where);
  const Composite* composite = find_composite(whole);
  if (composite != nullptr) complete_text_config(*composite, json);
  ParsedConfig parsed;
  parsed.composite = composite != nullptr;
  const auto language = [&] { return parsed.composite ? whole.at("text_config") : whole; };
  parsed.architecture = &find_row(language(), parsed.notes);
  const Architecture& row = *parsed.architecture;
  complete_rope(row, parsed.composite ? json["text_config"] : json);
  const JsonCursor root = language();
  parsed.weights = read_quantization(root, path.parent_path(), parsed.notes);
  check_hf_options(root, row, parsed.notes);

  ModelConfig& config = parsed.config;
  config.architecture = row.name;
  config.adjacent_pairs = row.gguf_interleaved;
  parse_layers(root, row, config);
  config.vocabulary = hf_count(root, "vocab_size", kMaxVocabularySize, row.keys.vocabulary_default);
  config.context = root.has("max_position_embeddings") ? hf_count(root, "max_position_embeddings", kMaxContext)
                                                       : row.keys.context_default;
  config.norm_epsilon = positive(root, row.keys.norm_epsilon, row.keys.norm_epsilon_default);
  config.tied_head = hf_switch(root, "tie_word_embeddings", row.keys.tied_head_default);
  parse_arithmetic(root, row, config);
  parse_hf_rope(root, row.rope, config, parsed.notes);
  set_unrotated(config, hf_unrotated(root, row, config));
  check_rope(config, where);
  check_shared_layers(config, hf_place(root, "num_kv_shared_layers"));
  parsed.attention_bias = hf_switch(root, row.keys.attention_bias, row.keys.attention_bias_default);
  parsed.output_bias = hf_switch(root, row.keys.output_bias, row.keys.output_bias_default);
  parsed.mlp_bias = hf_switch(root, row.keys.mlp_bias, row.keys.mlp_bias_default);
  parsed.convolution_bias = hf_switch(root, row.keys.convolution_bias, row.keys.convolution_bias_default);
  parsed.hf_interleaved = hf_switch(root, row.keys.interleaved, row.hf_interleaved);
  if (row.recurrence != nullptr) row.recurrence->read(root, parsed);
  if (config.attention_layers().empty())
    throw Error(ErrorCode::kUnsupported, root.place(), "found no layer with attention, expected at least one");
  if (root.has("auto_map")) parsed.notes.push_back(where + ": auto_map names custom code, which is never run");
  return parsed;
}

}  // namespace kvs::inline model
