// SPDX-License-Identifier: Apache-2.0
#include "run/model_info.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>
#include <set>

#include "calibrate/common/engine_pairs.h"
#include "calibrate/elitekv/memory.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "export/engines/engine.h"
#include "io/gguf.h"
#include "kernels/instruction_set.h"
#include "model/model_json.h"
#include "model/model_tensors.h"
#include "model/rope_angles.h"
#include "model/rope_json.h"
#include "run/estimate.h"

namespace kvs::inline run {
namespace {

std::vector<ModelInfo::File> files_of(const TensorArchive& archive) {
  std::set<std::filesystem::path> paths;
  for (const StoredTensor& tensor : archive.tensors()) paths.insert(archive.file_of(tensor));
  if (const auto* gguf = dynamic_cast<const GgufFile*>(&archive)) paths.insert(gguf->path());
  std::vector<ModelInfo::File> files;
  for (const auto& path : paths) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    files.push_back({path.string(), error ? 0 : bytes});
  }
  return files;
}

/// Most bytes first.
std::vector<ModelInfo::TensorType> types_of(const TensorArchive& archive) {
  std::map<std::string, ModelInfo::TensorType> sums;
  for (const StoredTensor& tensor : archive.tensors()) {
    ModelInfo::TensorType& sum = sums[tensor.type_name];
    sum.type = tensor.type_name;
    ++sum.tensors;
    sum.parameters += tensor.rows() * tensor.columns();
    sum.bytes += tensor.bytes.size();
  }
  std::vector<ModelInfo::TensorType> types;
  types.reserve(sums.size());
  for (auto& [name, sum] : sums) types.push_back(std::move(sum));
  std::ranges::stable_sort(types, std::greater{}, &ModelInfo::TensorType::bytes);
  return types;
}

std::uint64_t parameters(const ModelSource& source) {
  std::uint64_t count = 0;
  for (const std::vector<std::uint64_t>& shape : source.tensors().shapes())
    count += std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  return count;
}

/// Returns d_ff of the dense layers: one value if they share it.
LayerSizes widths_of(const ModelConfig& config) {
  std::vector<std::size_t> widths;
  bool equal = true;
  std::optional<std::size_t> first;
  for (const LayerConfig& layer : config.layer) {
    widths.push_back(layer.feed_forward.d_ff);
    if (layer.feed_forward.is_sparse()) continue;
    equal = equal && widths.back() == first.value_or(widths.back());
    first = widths.back();
  }
  return equal ? LayerSizes(config.d_ff()) : LayerSizes(std::move(widths));
}

std::string attention_text(const ModelConfig& config, const AttentionConfig& attention) {
  std::string text = attention.is_latent() ? "latent attention" : "attention";
  if (attention.chunk > 0)
    text += " in chunks of " + std::to_string(attention.chunk) + " tokens";
  else if (attention.window > 0)
    text += " in a window of " + std::to_string(attention.window) + " tokens";
  if (!config.ropes.empty() && config.ropes[attention.rope].scaling.type == RopeScaling::Type::kNone)
    text += " without RoPE";
  if (attention.kv_layer) text += " to another layer's rows";
  return text;
}

std::string recurrence_text(RecurrenceConfig::Kind kind) {
  using Kind = RecurrenceConfig::Kind;
  switch (kind) {
    case Kind::kDeltaNet:
      return "Gated DeltaNet";
    case Kind::kMamba2:
      return "Mamba-2";
    case Kind::kShortConvolution:
      return "short convolution";
    case Kind::kNone:
      break;
  }
  return "";
}

/// Names the blocks of a layer that mix tokens: "attention in a window of 512 tokens and Mamba-2".
std::string layer_text(const ModelConfig& config, std::size_t index) {
  const LayerConfig& layer = config.layer[index];
  const std::string recurrence = recurrence_text(layer.recurrence.kind);
  if (!layer.has_attention()) return recurrence.empty() ? "feed-forward block alone" : recurrence;
  return attention_text(config, layer.attention) + (recurrence.empty() ? "" : " and " + recurrence);
}

ModelInfo::Geometry geometry_of(const ModelConfig& config) {
  ModelInfo::Geometry geometry{.layers = config.layers(),
                               .d_model = config.d_model,
                               .d_ff = widths_of(config),
                               .query_heads = sizes_of(config, &AttentionConfig::query_heads),
                               .kv_heads = sizes_of(config, &AttentionConfig::kv_heads),
                               .head_dim = sizes_of(config, &AttentionConfig::head_dim),
                               .vocabulary = config.vocabulary,
                               .tied_head = config.tied_head,
                               .context = config.context};
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    const std::string what = layer_text(config, layer);
    const auto same = std::ranges::find(geometry.kinds, what, &ModelInfo::Geometry::Kind::what);
    if (same == geometry.kinds.end())
      geometry.kinds.push_back({what, 1});
    else
      ++same->layers;
  }
  if (const auto without = config.layers_without_cache(); !without.empty()) geometry.layers_without_cache = without;
  if (const AttentionConfig& attention = config.first_attention(); attention.is_latent())
    geometry.latent = {attention.latent.rank, attention.shared_key_dim()};
  return geometry;
}

std::optional<ModelInfo::Experts> experts_of(const ModelConfig& config, std::uint64_t parameters) {
  if (!config.has_experts()) return std::nullopt;
  ModelInfo::Experts info{.active_parameters = parameters};
  for (const LayerConfig& layer : config.layer) {
    const ExpertsConfig& experts = layer.feed_forward.experts;
    if (experts.count == 0) continue;
    info.count = experts.count;
    info.chosen = experts.chosen;
    info.d_ff = experts.d_ff;
    info.shared_d_ff = experts.shared_d_ff;
    ++info.layers;
    const std::size_t matrices = config.arithmetic.gated ? 3 : 2;
    info.active_parameters -=
        (experts.count - experts.chosen) * matrices * experts.d_ff * experts.channels(config.d_model);
  }
  return info;
}

/// One entry for each kind of layers that rotate alike.
/// @param window  tokens of a document, which `dynamic` and `longrope` follow
std::vector<ModelInfo::Rope> ropes_of(const ModelConfig& config, std::size_t window) {
  const auto wavelength = [](double frequency) { return 2 * std::numbers::pi / frequency; };
  std::vector<std::size_t> layers(config.ropes.size());
  for (const LayerConfig& layer : config.layer) layers[layer.attention.rope] += layer.has_attention() ? 1 : 0;
  std::vector<ModelInfo::Rope> kinds;
  for (std::size_t kind = 0; kind < config.ropes.size(); ++kind) {
    const RopeParameters& rope = config.ropes[kind];
    if (layers[kind] == 0 || rope.chunks() == 0 || rope.scaling.type == RopeScaling::Type::kNone) continue;
    RopeAngles angles = rope_angles(rope, window);
    std::erase(angles.frequencies, 0);  // `proportional`: chunks that do not turn
    const auto [lowest, highest] = std::ranges::minmax(angles.frequencies);
    const auto slow = std::ranges::count_if(angles.frequencies, [&](double frequency) {
      return wavelength(frequency) > static_cast<double>(config.context);
    });
    ModelInfo::Rope& info =
        kinds.emplace_back(ModelInfo::Rope{.layers = layers[kind],
                                           .base = rope.theta,
                                           .scaling = rope_scaling_json(rope.scaling),
                                           .rotary_dim = rope.rotary_dim,
                                           .chunks = angles.frequencies.size(),
                                           .factor = angles.factor,
                                           .highest_frequency = highest,
                                           .lowest_frequency = lowest,
                                           .shortest_wavelength = wavelength(highest),
                                           .longest_wavelength = wavelength(lowest),
                                           .chunks_below_one_turn = static_cast<std::size_t>(slow)});
    if (!info.scaling.is_null()) info.type = info.scaling.at("rope_type").get<std::string>();
  }
  return kinds;
}

std::string tokenizer_kind(const ModelSource& source) {
  const auto* gguf = dynamic_cast<const GgufFile*>(&source.archive());
  if (gguf == nullptr)
    return std::filesystem::exists(source.path() / "tokenizer.json") ? "tokenizer.json" : "tokenizer.model";
  std::string kind(gguf->get_string("tokenizer.ggml.model"));
  if (gguf->has("tokenizer.ggml.pre")) kind += ", pre-tokenizer " + std::string(gguf->get_string("tokenizer.ggml.pre"));
  return printable(kind, 80);
}

/// A tokenizer that cannot be used is no error here: token ids may come from elsewhere.
ModelInfo::Tokenizer tokenizer_of(const ModelSource& source) {
  try {
    const auto tokenizer = source.load_tokenizer();
    ModelInfo::Tokenizer info{.kind = tokenizer_kind(source),
                              .tokens = tokenizer->vocabulary_size(),
                              .bos = std::optional<std::int32_t>(),
                              .adds_bos = tokenizer->adds_bos(),
                              .notes = tokenizer->notes()};
    if (tokenizer->bos() >= 0) info.bos = tokenizer->bos();
    return info;
  } catch (const Error& error) {
    return {.error = error.what()};
  }
}

/// Returns the index of the first layer that has one.
const TokenIndexConfig& index_of(const ModelConfig& config) {
  const auto layer = std::ranges::find_if(
      config.layer, [](const LayerConfig& each) { return each.attention.latent.index.chosen > 0; });
  return layer->attention.latent.index;
}

std::vector<std::string> notes_of(const ModelSource& source) {
  std::vector<std::string> notes = source.notes();
  const ModelConfig& config = source.config();
  if (config.unrotated_layers() > 0) notes.push_back(unrotated_text(config));
  if (config.has_index())
    notes.push_back(
        "texts of more than " + std::to_string(index_of(config).chosen) +
        " tokens (index_topk) take the full cache alone: an index chooses the tokens that are read; its keys "
        "are not counted in the KV cache");
  return notes;
}

ModelInfo::KvCache cache_of(const ModelConfig& config) {
  const auto bytes_of = [](std::size_t values) { return ModelInfo::BytesByType{4 * values, 2 * values, 2 * values}; };
  ModelInfo::KvCache cache{.reals_per_token = config.cache_values_per_token(),
                           .bytes_per_token = bytes_of(config.cache_values_per_token()),
                           .bytes_per_1024_tokens = bytes_of(config.cache_values(1024)),
                           .bytes_at_context_f16 = 2 * config.cache_values(config.context)};
  for (const std::size_t layer : config.cached_layers()) cache.windowed_layers += config.window(layer) != 0 ? 1 : 0;
  return cache;
}

std::optional<ModelInfo::RecurrentStates> recurrent_states_of(const ModelConfig& config) {
  if (!config.has_recurrence()) return std::nullopt;
  const std::size_t reals = config.recurrent_values();
  return ModelInfo::RecurrentStates{
      static_cast<std::size_t>(std::ranges::count_if(config.layer, &LayerConfig::has_recurrence)), reals,
      reals * sizeof(float)};
}

/// A calibration of all layers as --rank leaves it, with the factors that hold no more parameters than what they
/// replace and, for an upper bound, no channel elite.
EliteConfig default_factors(const ModelConfig& model) {
  EliteConfig config;
  config.layers = model.cached_layers();
  config.by_attention = config.fitted_queries = true;
  config.whitening = Whitening::kBoth;
  config.rank = no_extra_parameters_rank(model.d_model, model.kv_heads(), model.head_dim(), config.r);
  return config;
}

ModelInfo::CommandMemory memory_of(const ModelSource& source, std::size_t window, DType type) {
  const ModelConfig& config = source.config();
  const EliteConfig factors = default_factors(config);
  EliteConfig search;
  search.layers = factors.layers;
  const double weights = loaded_weight_bytes(source, type), pass = pass_memory(config, weights, window);
  const auto bytes = [](double value) { return static_cast<std::uint64_t>(value); };
  return {.weights = bytes(weights),
          .capture = bytes(pass),
          .spectrum = bytes(pass),
          .eval = bytes(pass),
          .faedkv = bytes(ablation_memory(config, weights, window)),
          .elitekv = bytes(pass + elite_memory(config, search, type)),
          .elitekv_rank = bytes(pass + elite_memory(config, factors, type))};
}

/// Returns every method, and for those that do not apply to the model the reason.
std::vector<ModelInfo::MethodRow> method_rows(const ModelConfig& config) {
  std::vector<ModelInfo::MethodRow> rows;
  for (const Method* const method : all_methods()) {
    const std::string obstacle = obstacle_of(*method, config);
    ModelInfo::MethodRow& row = rows.emplace_back(
        ModelInfo::MethodRow{std::string(method->name), std::string(method->title), std::string(method->summary),
                             std::string(form_name(method->form)), obstacle.empty()});
    if (!obstacle.empty()) row.reason = obstacle;
    if (obstacle.empty() && method->notes != nullptr) row.notes = method->notes(config);
  }
  return rows;
}

/// Returns why an engine does not execute a storage type for the model; empty if it does.
std::string type_obstacle(const Engine& engine, std::string_view type, const ModelConfig& config) {
  Json settings = kv_type_settings(type);
  settings.update(settings_of(engine));
  return settings_obstacle(engine, settings, config);
}

/// Sets the storage types of an engine that it executes for the model; if there are none, the reason.
void add_types(const Engine& engine, const ModelConfig& config, ModelInfo::EngineRow& row) {
  std::string reason;
  for (const std::string_view type : engine.types) {
    const std::string obstacle = type_obstacle(engine, type, config);
    if (obstacle.empty()) row.types.emplace_back(type);
    if (reason.empty()) reason = obstacle;
  }
  if (row.types.empty() && !reason.empty()) row.reason = reason;
}

std::vector<ModelInfo::EngineRow> engine_rows(const ModelConfig& config) {
  std::vector<ModelInfo::EngineRow> rows;
  for (const Engine* const engine : all_engines()) {
    ModelInfo::EngineRow& row = rows.emplace_back(
        ModelInfo::EngineRow{std::string(engine->name), std::string(engine->version), std::string(engine->summary)});
    add_types(*engine, config, row);
    const std::string obstacle = engine->obstacle(EngineCache(full_choice(), config));
    row.methods = engine->runs_methods && obstacle.empty();
    if (!obstacle.empty()) row.reason = obstacle;
  }
  return rows;
}

}  // namespace

ModelInfo model_info(const ModelSource& source, std::size_t window) {
  const ModelConfig& config = source.config();
  return {.name = printable(config.name),
          .path = source.path().string(),
          .architecture = config.architecture,
          .format = source.format() == ModelFormat::kGguf ? "gguf" : "safetensors",
          .files = files_of(source.archive()),
          .parameters = parameters(source),
          .tensor_types = types_of(source.archive()),
          .geometry = geometry_of(config),
          .experts = experts_of(config, parameters(source)),
          .rope = ropes_of(config, window),
          .tokenizer = tokenizer_of(source),
          .kv_cache = cache_of(config),
          .recurrent_states = recurrent_states_of(config),
          .memory = {window, memory_of(source, window, DType::kF32), memory_of(source, window, DType::kBF16)},
          .processor = {std::string(name_of(instruction_set())), has_bf16_products()},
          .methods = method_rows(config),
          .engines = engine_rows(config),
          .notes = notes_of(source)};
}

}  // namespace kvs::inline run
