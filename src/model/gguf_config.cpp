// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "io/gguf.h"
#include "model/checkpoints/checkpoints.h"
#include "model/gguf_layers.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"
#include "model/routing.h"

namespace kvs::inline model {

namespace {

/// Only whole models state their geometry.
void check_type(const GgufFile& file) {
  constexpr std::string_view kType = "general.type", kAdapter = "adapter.type";
  const bool named = file.has(kType);
  const std::string type(named ? file.get_string(kType) : file.has(kAdapter) ? "adapter" : "model");
  if (type == "model") return;
  std::string what = "found a GGUF of type \"" + printable(type, 80) + '"';
  if (file.has(kAdapter)) what += " (" + printable(file.get_string(kAdapter), 80) + ")";
  throw Error(ErrorCode::kUnsupported, file.path().string() + ": " + std::string(named ? kType : kAdapter),
              what + ", which is no whole model; expected \"model\"" +
                  (type == "adapter" ? ": merge the adapter into its base model first" : ""));
}

/// Refuses options whose values would change the arithmetic; they must not be ignored.
void check_options(const GgufKeys& keys, const Architecture& row) {
  if (!keys.boolean("attention.causal", true)) {
    keys.fail(ErrorCode::kUnsupported, "attention.causal", "found false, supported is: causal attention");
  }
  for (const std::string_view key :
       {"attention.scale", "attention.clamp_kqv", "attention.max_alibi_bias", "embedding_scale", "residual_scale",
        "logit_scale", "attn_logit_softcapping", "final_logit_softcapping"}) {
    const bool multiplies = row.keys.multipliers && (key.ends_with("_scale") || key == "attention.scale");
    const bool reads = (key == "attention.clamp_kqv" && !row.keys.clip.empty()) || key == row.keys.logit_scale;
    if (multiplies || reads || !keys.has(key) || keys.real(key) == 0 || key == row.keys.attention_softcap ||
        key == row.keys.logit_softcap)
      continue;
    keys.fail(ErrorCode::kUnsupported, key, "found a factor that this architecture does not compute with here");
  }
}

constexpr std::string_view kPattern = "attention.sliding_window_pattern";

/// Returns which layers have a window, from the pattern's key (period or switches) or the row's own period.
std::vector<bool> patterned_layers(const GgufKeys& keys, const Architecture& row, std::size_t layers) {
  const bool follows = row.gguf_windows == WindowRule::kChunks;  // layers that rotate have chunks
  std::size_t period = follows ? gguf_unrotated_interval(keys) : row.window_period;
  if (keys.has(kPattern)) {
    if (const auto* list = std::get_if<GgufArray>(&keys.value(kPattern))) {
      const auto* switches = std::get_if<std::vector<bool>>(list);
      if (switches == nullptr || switches->size() != layers) {
        keys.fail(ErrorCode::kInput, kPattern, "expected a period, or one boolean for each layer");
      }
      return *switches;
    }
    period = keys.count(kPattern, kMaxLayers);
  }
  std::vector<bool> windowed(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) windowed[layer] = (layer + 1) % period != 0;
  return windowed;
}

/// Reads the size of windows or chunks, and which layers have one.
void parse_windows(const GgufKeys& keys, const Architecture& row, ModelConfig& config) {
  const bool chunks = row.gguf_windows == WindowRule::kChunks;
  const std::string_view key = chunks ? "attention.chunk_size" : "attention.sliding_window";
  const std::size_t window =
      keys.nonzero(key) ? keys.count(key, kMaxContext) : (keys.has(key) ? 0 : row.gguf_window_default);
  if (window == 0) return;
  if (row.gguf_windows == WindowRule::kNone) {
    keys.fail(ErrorCode::kUnsupported, key,
              "found sliding-window attention, which a GGUF of this architecture does not say the layers of");
  }
  std::vector<bool> windowed(config.layers(), true);
  if (row.gguf_windows == WindowRule::kPattern || chunks) {
    windowed = patterned_layers(keys, row, config.layers());
  } else if (keys.has(kPattern)) {
    keys.fail(ErrorCode::kUnsupported, kPattern,
              "found a pattern of layers, supported is: a window in every layer of this architecture");
  }
  for (std::size_t layer = 0; layer < windowed.size(); ++layer) {
    AttentionConfig& attention = config.layer[layer].attention;
    if (windowed[layer]) (chunks ? attention.chunk : attention.window) = window;
  }
}

float softcap(const GgufKeys& keys, std::string_view key, float otherwise) {
  if (key.empty() || !keys.has(key)) return otherwise;
  return keys.real(key) == 0 ? 0 : static_cast<float>(keys.positive(key));
}

QueryTemperature parse_temperature(const GgufKeys& keys) {
  constexpr std::string_view kScale = "attention.temperature_scale", kLength = "rope.scaling.original_context_length";
  if (!keys.has(kScale) || keys.real(kScale) == 0) return {};
  return {.scale = static_cast<float>(keys.positive(kScale)),
          .length = keys.count(keys.has(kLength) ? kLength : "context_length", kMaxContext)};
}

/// Reads what the attention of all layers has in common, without windows. Heads are those of the first layer that has
/// some.
AttentionConfig parse_attention(const GgufKeys& keys, const Architecture& row, const GgufLayerSizes& sizes,
                                std::size_t d_model, std::string_view where) {
  const std::size_t layers = sizes.kv_heads.size(), first = sizes.first_attention();
  AttentionConfig attention;
  attention.query_heads = sizes.query_heads[first];
  if (row.keys.query_temperature) attention.temperature = parse_temperature(keys);
  check_options(keys, row);
  if (row.layers != nullptr && row.layers->read_gguf != nullptr) return attention;  // it sets the rest
  attention.kv_heads = sizes.kv_heads[first];
  attention.head_dim = keys.has("attention.key_length") ? keys.count("attention.key_length", kMaxWidth) : 0;
  complete_geometry(attention, d_model, where,
                    {"embedding_length", "attention.head_count", "attention.head_count_kv", "attention.key_length"});
  if (layers == row.gguf_wide_scale_layers)
    attention.scale = 1 / std::sqrt(static_cast<float>(d_model / attention.query_heads));
  keys.must_equal("attention.value_length", attention.head_dim, "the head size");
  if (row.keys.multipliers) attention.scale = static_cast<float>(keys.positive_or("attention.scale", 0));
  attention.softcap = softcap(keys, row.keys.attention_softcap, row.keys.attention_softcap_default);
  attention.sinks = row.keys.sinks;
  if (!row.keys.clip.empty() && keys.has("attention.clamp_kqv") && keys.real("attention.clamp_kqv") != 0)
    attention.clip = static_cast<float>(keys.positive("attention.clamp_kqv"));
  return attention;
}

/// Sets how the router's logits become weights. 3: a softmax over the chosen experts alone, which are the weights of a
/// softmax over all divided by their sum.
void parse_scores(const GgufKeys& keys, const ExpertRules& rules, ExpertsConfig& experts) {
  constexpr std::string_view kFunction = "expert_gating_func", kNormalised = "expert_weights_norm";
  experts.scores = rules.gguf_scores;
  experts.normalised = rules.gguf_normalised || keys.boolean(kNormalised, false);
  if (!keys.nonzero(kFunction)) return;
  const std::size_t function = keys.count(kFunction, UINT32_MAX);
  if (function > 3)
    keys.fail(ErrorCode::kUnsupported, kFunction,
              "found " + std::to_string(function) + ", supported are: 1 (softmax), 2 (sigmoid), 3 (softmax)");
  experts.scores = function == 2 ? ExpertsConfig::Scores::kSigmoid : ExpertsConfig::Scores::kSoftmax;
  experts.normalised = experts.normalised || function == 3;
}

/// Returns the width of the shared expert: that of its tensors, because the key is wrong in some files; 0: there is
/// none.
std::size_t shared_width(const GgufFile& file, const GgufKeys& keys, const ExpertRules& rules, std::size_t layer) {
  constexpr std::string_view kWidth = "expert_shared_feed_forward_length";
  const auto spec = std::ranges::find(rules.tensors, TensorRole::kSharedUp, &TensorSpec::role);
  if (spec == rules.tensors.end()) return 0;
  const StoredTensor* tensor = file.find(with_number(spec->gguf, layer) + ".weight");
  if (tensor != nullptr && !tensor->shape.empty())
    return static_cast<std::size_t>(std::min(tensor->shape[0], kMaxWidth));
  return keys.nonzero(kWidth) ? keys.count(kWidth, kMaxWidth) : 0;
}

/// Reads the experts of a layer, like llama.cpp.
ExpertsConfig parse_experts(const GgufFile& file, const GgufKeys& keys, const Architecture& row, std::size_t layer) {
  ExpertsConfig experts;
  experts.count = keys.count("expert_count", kMaxWidth);
  experts.chosen = keys.count("expert_used_count", kMaxWidth);
  if (experts.chosen > experts.count)
    keys.fail(ErrorCode::kInput, "expert_used_count",
              "found " + std::to_string(experts.chosen) + ", expected at most the " + std::to_string(experts.count) +
                  " experts");
  const bool own = keys.has("expert_feed_forward_length");
  experts.d_ff = keys.count(own ? "expert_feed_forward_length" : "feed_forward_length", kMaxWidth);
  experts.shared_d_ff = shared_width(file, keys, *row.experts, layer);
  experts.clamp = row.experts->gguf_clamp;
  experts.scale = static_cast<float>(keys.positive_or("expert_weights_scale", 1));
  parse_scores(keys, *row.experts, experts);
  if (experts.scores == ExpertsConfig::Scores::kSoftmax) experts.group_scores = row.experts->gguf_group_scores;
  if (!keys.nonzero("expert_group_count")) return experts;
  experts.groups = keys.count("expert_group_count", kMaxWidth);
  constexpr std::string_view kChosenGroups = "expert_group_used_count";  // some files with one group lack it
  experts.chosen_groups = experts.groups == 1 && !keys.has(kChosenGroups) ? 1 : keys.count(kChosenGroups, kMaxWidth);
  if (const std::string problem = group_problem(experts); !problem.empty())
    keys.fail(ErrorCode::kInput, "expert_group_count", problem);
  return experts;
}

/// Gives experts to the layers that have some: all, or every step-th after the first ones. In families whose layers may
/// differ these have a router, as in llama.cpp.
void parse_expert_layers(const GgufFile& file, const GgufKeys& keys, const Architecture& row, ModelConfig& config) {
  if (!keys.nonzero("expert_count")) return;
  if (row.experts == nullptr)
    keys.fail(ErrorCode::kUnsupported, "expert_count",
              "found a mixture of experts, supported are: dense models of this architecture");
  constexpr std::string_view kDense = "leading_dense_block_count", kStep = "interleave_moe_layer_step";
  const std::size_t dense = keys.has(kDense) ? keys.unsigned_integer(kDense, kMaxLayers) : 0;
  const std::size_t step = keys.has(kStep) ? keys.count(kStep, kMaxLayers) : 1;
  for (std::size_t layer = dense; layer < config.layers(); ++layer) {
    const bool routed =
        !layers_may_differ(row) || file.find("blk." + std::to_string(layer) + ".ffn_gate_inp.weight") != nullptr;
    if (routed && (layer + 1) % step == 0)
      config.layer[layer].feed_forward.experts = parse_experts(file, keys, row, layer);
  }
}

/// Returns true if one of the layers has a tensor.
bool any_layer_has(const GgufFile& file, std::string_view name, std::size_t layers) {
  for (std::size_t layer = 0; layer < layers; ++layer)
    if (file.find(with_number(name, layer) + ".weight") != nullptr) return true;
  return false;
}

/// In a family whose parallel models lack a norm, the norm decides; in a family without the switch its arithmetic does,
/// as in llama.cpp.
bool parse_parallel_residual(const GgufFile& file, const GgufKeys& keys, const Architecture& row, std::size_t layers) {
  const auto spec = std::ranges::find(row.feed_forward_tensors, true, &TensorSpec::sequential_only);
  if (spec == row.feed_forward_tensors.end())
    return row.keys.parallel_residual.empty() ? row.arithmetic.parallel_residual
                                              : keys.boolean("use_parallel_residual", row.arithmetic.parallel_residual);
  return !any_layer_has(file, spec->gguf, layers);
}

/// Returns true if a family's QK-norm is optional and a file lacks its tensors.
bool lacks_qk_norm(const GgufFile& file, const Architecture& row, std::size_t layers) {
  const auto spec = std::ranges::find(row.attention_tensors, TensorRole::kQueryNorm, &TensorSpec::role);
  return spec != row.attention_tensors.end() && !row.keys.qk_norm.empty() && !any_layer_has(file, spec->gguf, layers);
}

/// Reads the arithmetic that differs from the row's own.
void parse_arithmetic(const GgufFile& file, const GgufKeys& keys, const Architecture& row, ModelConfig& config) {
  config.arithmetic = row.arithmetic;
  config.arithmetic.parallel_residual = parse_parallel_residual(file, keys, row, config.layers());
  config.logit_softcap = softcap(keys, row.keys.logit_softcap, row.keys.logit_softcap_default);
  if (lacks_qk_norm(file, row, config.layers())) {
    config.arithmetic.qk_norm = QkNorm::kNone;
    config.arithmetic.norms_after_rope = false;
  }
  if (!row.keys.logit_scale.empty())
    config.logit_scale = static_cast<float>(keys.positive_or("logit_scale", double{row.keys.logit_scale_default}));
  if (!row.keys.multipliers) return;
  config.embedding_scale = static_cast<float>(keys.positive_or("embedding_scale", 1));
  config.residual_scale = static_cast<float>(keys.positive_or("residual_scale", 1));
  config.logit_scale = static_cast<float>(1 / keys.positive_or("logit_scale", 1));
}

/// Returns the rows of the embedding. Its shape is checked later, with all others.
std::size_t embedding_rows(const GgufFile& file) {
  const StoredTensor* embedding = file.find("token_embd.weight");
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorCode::kInput, file.path().string() + ": tensor token_embd.weight", problem);
  };
  if (embedding == nullptr) refuse("is missing");
  if (embedding->shape.size() != 2)
    refuse("found " + std::to_string(embedding->shape.size()) + " dimensions, expected a matrix");
  if (embedding->shape[0] == 0 || embedding->shape[0] > kMaxVocabularySize)
    refuse("found " + std::to_string(embedding->shape[0]) + " rows, expected 1 to " +
           std::to_string(kMaxVocabularySize));
  return static_cast<std::size_t>(embedding->shape[0]);
}

/// Returns the rows of the embedding. llama.cpp ignores the key vocab_size, which is wrong in some fine-tunes.
std::size_t vocabulary_of(const GgufFile& file, const GgufKeys& keys, std::vector<std::string>& notes) {
  constexpr std::string_view kKey = "vocab_size";
  if (!keys.has(kKey)) return embedding_rows(file);
  const std::size_t stated = keys.count(kKey, kMaxVocabularySize);
  if (file.find("token_embd.weight") == nullptr) return stated;
  const std::size_t rows = embedding_rows(file);
  if (rows != stated)
    notes.push_back(file.path().string() + ": vocab_size is " + std::to_string(stated) +
                    ", but token_embd.weight has " + std::to_string(rows) + " rows, which count, as in llama.cpp");
  return rows;
}

/// Returns the layers that do not rotate: [layer]. Files of Granite 4 say it by a key of another name.
std::vector<bool> unrotated_layers(const GgufKeys& keys, const Architecture& row, const ModelConfig& config) {
  if (row.unrotated == UnrotatedRule::kUnlessStated)
    return std::vector<bool>(config.layers(), !keys.boolean("rope.scaling.finetuned", false));
  return unrotated_by_rule(row, config, config.has_windows(), gguf_unrotated_interval(keys));
}

/// Returns the number of layers without those that predict further tokens, which are the last.
std::size_t parse_layers(const GgufKeys& keys) {
  constexpr std::string_view kNext = "nextn_predict_layers";
  const std::size_t blocks = keys.count("block_count", kMaxLayers);
  const std::size_t next = keys.has(kNext) ? keys.unsigned_integer(kNext, kMaxLayers) : 0;
  if (next >= blocks)
    keys.fail(ErrorCode::kInput, kNext,
              "found " + std::to_string(next) + ", expected fewer than the " + std::to_string(blocks) + " blocks");
  return blocks - next;
}

}  // namespace

ParsedConfig parse_gguf_config(const GgufFile& file) {
  const std::string where = file.path().string();
  ParsedConfig parsed;
  check_type(file);
  const std::string_view name = file.get_string("general.architecture");
  const GgufKeys keys(file, name);
  parsed.architecture = &architecture_of_gguf(name, where + ": general.architecture",
                                              [&](std::string_view key) { return keys.has(key); });
  parsed.weights = gguf_weights();
  const Architecture& row = *parsed.architecture;

  ModelConfig& config = parsed.config;
  config.name = shown_name(file.has("general.name") ? file.get_string("general.name") : file.path().stem().native());
  config.architecture = row.name;
  config.adjacent_pairs = row.gguf_interleaved;
  const std::size_t layers = parse_layers(keys);
  config.d_model = keys.count("embedding_length", kMaxWidth);
  const GgufLayerSizes sizes = read_gguf_layer_sizes(keys, row, layers);
  config.layer.assign(layers,
                      {.attention = parse_attention(keys, row, sizes, config.d_model, where), .feed_forward = {}});
  for (std::size_t layer = 0; layer < layers; ++layer) config.layer[layer].feed_forward.d_ff = sizes.d_ff[layer];
  if (row.layers != nullptr && row.layers->read_gguf != nullptr) row.layers->read_gguf(keys, config);
  parse_expert_layers(file, keys, row, config);
  config.vocabulary = vocabulary_of(file, keys, parsed.notes);
  config.context = keys.count("context_length", kMaxContext);
  config.norm_epsilon = static_cast<float>(keys.positive(
      row.arithmetic.norm == NormKind::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"));
  config.tied_head = file.find("output.weight") == nullptr;
  parse_arithmetic(file, keys, row, config);
  parse_windows(keys, row, config);
  if (row.layers != nullptr && row.layers->read_gguf_sizes != nullptr) row.layers->read_gguf_sizes(keys, config);
  parse_gguf_rope(file, keys, row.rope, config);
  set_unrotated(config, unrotated_layers(keys, row, config));
  check_rope(config, where);
  set_gguf_layer_sizes(keys, sizes, parsed);
  check_shared_layers(config, keys.place(std::string(name) + ".attention.shared_kv_layers"));
  return parsed;
}

}  // namespace kvs::inline model
