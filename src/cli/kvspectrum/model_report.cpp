#include "cli/kvspectrum/model_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <numbers>
#include <set>

#include "calibrate/elitekv/memory.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "io/gguf.h"
#include "kernels/instruction_set.h"
#include "model/model_tensors.h"
#include "model/rope.h"
#include "run/estimate.h"

namespace kvs {
namespace {

constexpr std::array kCacheTypes{DType::kF32, DType::kF16, DType::kBF16};
constexpr std::array kComputeTypes{DType::kF32, DType::kBF16};

Json files_json(const TensorArchive& archive) {
  std::set<std::filesystem::path> paths;
  for (const StoredTensor& tensor : archive.tensors()) paths.insert(archive.file_of(tensor));
  if (const auto* gguf = dynamic_cast<const GgufFile*>(&archive)) paths.insert(gguf->path());
  Json files = Json::array();
  for (const auto& path : paths) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    files.push_back({{"path", path.string()}, {"bytes", error ? 0 : bytes}});
  }
  return files;
}

/// The types that the tensors are stored in, most bytes first.
Json types_json(const TensorArchive& archive) {
  struct Sum {
    std::size_t tensors = 0;
    std::uint64_t values = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const StoredTensor& tensor : archive.tensors()) {
    Sum& sum = sums[tensor.type_name];
    ++sum.tensors;
    sum.values += tensor.rows() * tensor.columns();
    sum.bytes += tensor.bytes.size();
  }
  std::vector<std::pair<std::string, Sum>> ordered(sums.begin(), sums.end());
  std::ranges::stable_sort(ordered, std::greater{}, [](const auto& entry) { return entry.second.bytes; });
  Json types = Json::array();
  for (const auto& [name, sum] : ordered)
    types.push_back({{"type", name}, {"tensors", sum.tensors}, {"parameters", sum.values}, {"bytes", sum.bytes}});
  return types;
}

std::uint64_t parameters(const ModelSource& source) {
  std::uint64_t count = 0;
  for (const std::string& name : source.tensors().names()) {
    const StoredTensor* tensor = source.archive().find(name);
    count += tensor->rows() * tensor->columns();
  }
  return count;
}

Json geometry_json(const ModelConfig& config) {
  return {{"layers", config.layers},           {"d_model", config.d_model},     {"d_ff", config.d_ff},
          {"query_heads", config.query_heads}, {"kv_heads", config.kv_heads},   {"head_dim", config.head_dim},
          {"vocabulary", config.vocabulary},   {"tied_head", config.tied_head}, {"context", config.context}};
}

/// One entry per kind of layers that rotate alike.
/// @param window  tokens of a document, which `dynamic` and `longrope` follow
Json rope_json(const ModelConfig& config, std::size_t window) {
  const auto wavelength = [](double frequency) { return 2 * std::numbers::pi / frequency; };
  std::vector<std::size_t> layers(config.ropes.size());
  for (std::size_t layer = 0; layer < config.layers; ++layer) ++layers[config.rope_kind(layer)];
  Json kinds = Json::array();
  for (std::size_t kind = 0; kind < config.ropes.size(); ++kind) {
    const RopeParameters& rope = config.ropes[kind];
    if (rope.chunks() == 0) continue;
    const RopeAngles angles = rope_angles(rope, window);
    const Json scaling = rope_scaling_json(rope.scaling);
    const auto [lowest, highest] = std::ranges::minmax(angles.frequencies);
    const auto slow = std::ranges::count_if(angles.frequencies, [&](double frequency) {
      return wavelength(frequency) > static_cast<double>(config.context);
    });
    kinds.push_back({{"layers", layers[kind]},
                     {"type", scaling.is_null() ? Json("default") : scaling.at("rope_type")},
                     {"base", rope.theta},
                     {"scaling", scaling},
                     {"rotary_dim", rope.rotary_dim},
                     {"chunks", rope.chunks()},
                     {"factor", angles.factor},
                     {"highest_frequency", highest},
                     {"lowest_frequency", lowest},
                     {"shortest_wavelength", wavelength(highest)},
                     {"longest_wavelength", wavelength(lowest)},
                     {"chunks_below_one_turn", slow}});
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
Json tokenizer_json(const ModelSource& source) {
  try {
    const auto tokenizer = source.load_tokenizer();
    return {{"kind", tokenizer_kind(source)},
            {"tokens", tokenizer->vocabulary_size()},
            {"bos", bos_json(tokenizer->bos())},
            {"adds_bos", tokenizer->adds_bos()},
            {"notes", tokenizer->notes()}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

Json cache_json(const ModelConfig& config) {
  Json per_token = Json::object(), per_thousand = Json::object();
  for (const DType type : kCacheTypes) {
    const std::size_t bytes = config.cache_values_per_token() * item_size(type);
    per_token[std::string(name_of(type))] = bytes;
    per_thousand[std::string(name_of(type))] = 1024 * bytes;
  }
  std::size_t windowed = 0;
  for (std::size_t layer = 0; layer < config.layers; ++layer) windowed += config.window(layer) != 0 ? 1 : 0;
  return {{"reals_per_token", config.cache_values_per_token()},
          {"bytes_per_token", per_token},
          {"bytes_per_1024_tokens", per_thousand},
          {"windowed_layers", windowed},
          {"bytes_at_context_f16",
           2 * config.cache_values_per_token() / config.layers * config.cached_tokens(config.context)}};
}

/// A calibration of all layers as --rank leaves it, with the factors that hold no more parameters than what they
/// replace and, for an upper bound, no channel elite.
EliteConfig default_factors(const ModelConfig& model) {
  EliteConfig config;
  config.layers.resize(model.layers);
  config.by_attention = config.fitted_queries = true;
  config.whitening = Whitening::kBoth;
  config.rank = no_extra_parameters_rank(model.d_model, model.kv_heads, model.head_dim, config.r);
  return config;
}

Json memory_json(const ModelSource& source, std::size_t window) {
  const ModelConfig& config = source.config();
  const EliteConfig factors = default_factors(config);
  EliteConfig search;
  search.layers = factors.layers;
  Json memory{{"window", window}};
  for (const DType type : kComputeTypes) {
    const double weights = loaded_weight_bytes(source, type), pass = pass_memory(config, weights, window);
    const auto bytes = [](double value) { return static_cast<std::uint64_t>(value); };
    memory[std::string(name_of(type))] = {{"weights", bytes(weights)},
                                          {"capture", bytes(pass)},
                                          {"spectrum", bytes(pass)},
                                          {"eval", bytes(pass)},
                                          {"faedkv", bytes(ablation_memory(config, weights, window))},
                                          {"elitekv", bytes(pass + elite_memory(config, search, type))},
                                          {"elitekv --rank", bytes(pass + elite_memory(config, factors, type))}};
  }
  return memory;
}

/// Every method, and why one is not defined for the model.
Json methods_json(const ModelConfig& config) {
  Json methods = Json::array();
  for (const Method* const method : all_methods()) {
    const std::string obstacle = method->obstacle == nullptr ? "" : method->obstacle(config);
    Json& entry = methods.emplace_back(Json{
        {"method", method->name}, {"title", method->title}, {"what", method->summary}, {"applies", obstacle.empty()}});
    if (!obstacle.empty()) entry["reason"] = obstacle;
    if (obstacle.empty() && method->notes != nullptr) entry["notes"] = method->notes(config);
  }
  return methods;
}

}  // namespace

Json model_report(const ModelSource& source, std::size_t window) {
  const ModelConfig& config = source.config();
  return {{"name", printable(config.name)},
          {"path", source.path().string()},
          {"architecture", config.architecture},
          {"format", source.format() == ModelFormat::kGguf ? "gguf" : "safetensors"},
          {"files", files_json(source.archive())},
          {"parameters", parameters(source)},
          {"tensor_types", types_json(source.archive())},
          {"geometry", geometry_json(config)},
          {"rope", rope_json(config, window)},
          {"tokenizer", tokenizer_json(source)},
          {"kv_cache", cache_json(config)},
          {"memory", memory_json(source, window)},
          {"processor", {{"isa", name_of(instruction_set())}, {"bf16_faster", has_bf16_products()}}},
          {"methods", methods_json(config)},
          {"notes", source.notes()}};
}

}  // namespace kvs
