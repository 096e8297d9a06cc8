// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <sstream>
#include <string>
#include <string_view>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

std::string obstacle_of_stock(const EngineCache& cache) {
  constexpr const char* kExpected = ", expected the full cache at 16 bits: QuantizedCache computes other codes";
  if (!cache.is_full()) return "found " + std::string(cache.method.name) + kExpected;
  std::string obstacle;
  const auto type = one_type(cache, obstacle);
  if (!type) return obstacle;
  return is_16_bits(*type) ? "" : "found " + *type + kExpected;
}

EngineUse use_in_stock(const EngineCache& /*cache*/) {
  return {.flags = {}, .notes = {"the default cache (DynamicCache)"}};
}

/// Returns what the Python package does not compute in a layer; empty if it computes all.
std::string obstacle_of_layer(const LayerConfig& layer) {
  const AttentionConfig& attention = layer.attention;
  if (layer.has_attention() == layer.has_recurrence())
    return "found layers with both attention and recurrence or neither, expected one of them";
  if (!layer.has_attention()) return "";
  if (attention.chunk > 0) return "found attention within chunks, expected none";
  if (attention.softcap > 0) return "found scores with a cap, expected none";
  if (attention.sinks) return "found attention sinks, expected none";
  if (attention.one_row || attention.kv_layer) return "found layers without keys and values of their own";
  return "";
}

/// Returns what the Python package does not compute of a model's attention; empty if it computes all.
/// Source: Config.check_model() and cache.py in export/python/kvspectrum.
std::string obstacle_of_model(const ModelConfig& model) {
  using Type = RopeScaling::Type;
  constexpr std::array<std::string_view, 2> kOtherLayers{"gpt_neox", "nemotron_h"};
  if (holds(kOtherLayers, model.architecture)) return "found layers without self_attn, expected layers as Llama's";
  if (model.arithmetic.norms_after_rope) return "found norms of queries and keys after RoPE, expected none";
  for (const RopeParameters& rope : model.ropes)
    if (rope.scaling.type == Type::kDynamic || rope.scaling.type == Type::kLongRope)
      return "found RoPE whose frequencies change with the length, expected the same for all lengths";
  for (const LayerConfig& layer : model.layer)
    if (std::string found = obstacle_of_layer(layer); !found.empty()) return found;
  return "";
}

/// Storage types of this project's comparisons. The package executes all the others, too.
constexpr std::array<std::string_view, 9> kPackageTypes{
    "q8_0",   "q5_0", "q4_0", "q8_0/q4_0", "fp8", "int8_per_token_head", "int4_per_token_head", "turboquant_4bit_nc",
    "quarot4"};

/// Returns true if the Python package has a layer for a method.
bool package_has(std::string_view method) {
  std::istringstream names(KVS_PACKAGE_METHODS);
  for (std::string name; names >> name;)
    if (name == method) return true;
  return false;
}

std::string obstacle_of_package(const EngineCache& cache) {
  if (!package_has(cache.method.name))
    return "found " + std::string(cache.method.name) + ", expected a method of the package kvspectrum";
  return cache.package_obstacle.empty() ? obstacle_of_model(cache.model) : cache.package_obstacle;
}

EngineUse use_in_package(const EngineCache& /*cache*/) {
  return {.flags = {}, .notes = {"CalibratedCache.from_config(CONFIG, model) of the package kvspectrum"}};
}

}  // namespace

const Engine kTransformers{
    .name = "transformers",
    .version = "5.23",
    .summary = "the full cache at 16 bits; its QuantizedCache computes other codes than any type here",
    .obstacle = obstacle_of_stock,
    .use = use_in_stock};

const Engine kTransformersPackage{.name = "transformers-kvspectrum",
                                  .version = "5.0 to 5.24",
                                  .summary = "every method and storage type, with the package kvspectrum",
                                  .types = kPackageTypes,
                                  .runs_methods = true,
                                  .obstacle = obstacle_of_package,
                                  .use = use_in_package};

}  // namespace kvs::inline engines
