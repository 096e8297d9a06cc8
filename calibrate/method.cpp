// SPDX-License-Identifier: Apache-2.0
#include "calibrate/method.h"

#include <utility>

#include "caches/full.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Returns the words of `prefill` that a method takes, its default first.
std::span<const std::string_view> prefill_words(Prefill prefill) {
  static constexpr std::string_view kWords[] = {"stepwise", "whole"};
  const std::span<const std::string_view> words(kWords);
  switch (prefill) {
    case Prefill::kStepwise:
      return words.first(1);
    case Prefill::kWhole:
      return words.last(1);
    case Prefill::kEither:
      return words;
    case Prefill::kNone:
      break;
  }
  throw Error(ErrorCode::kInternal, "prefill", "the method has no parameter for it");
}

Prefix prefix_of(const Method& method, Parameters& parameters) {
  const auto words = prefill_words(method.prefill);
  Prefix prefix{
      parameters.count("prefix", "first tokens, which are not scored", 0, method.prefill == Prefill::kWhole ? 1 : 0)};
  prefix.whole =
      words[parameters.choice(
          "prefill", "whole: compute the prefix with full attention and compress it once, at its end", words)] ==
      "whole";
  if (prefix.whole && prefix.tokens == 0)
    parameters.refuse("prefix", "found 0, expected the tokens of a whole prefill");
  return prefix;
}

std::unique_ptr<LayerCache> make_with(const LayerMaker& make, const Method& method, Parameters& parameters,
                                      std::size_t layer, const CacheShape& shape) {
  const LayerShape& of_layer = shape.layers.at(layer);
  if (!parameters.select(layer)) return make_full_cache(plain_types(of_layer));
  const KvTypes types = method.takes_kv_type ? read_kv_types(parameters, layer, shape) : plain_types(of_layer);
  std::unique_ptr<LayerCache> cache = make(parameters, {layer, of_layer, types});
  return of_layer.window != 0 ? make_full_cache(types) : std::move(cache);
}

}  // namespace

std::string obstacle_of(const Method& method, const ModelConfig& model) {
  if (method.reads_queries && model.has_readers())
    return "found layers that read the rows of another layer, expected rows of its own in every layer: the method "
           "chooses rows by the queries of one layer";
  return method.obstacle == nullptr ? std::string() : method.obstacle(model);
}

std::unique_ptr<LayerCache> make_layer_cache(const Method& method, Parameters& parameters, std::size_t layer,
                                             const CacheShape& shape) {
  return make_with(method.make, method, parameters, layer, shape);
}

Cache make_cache(const Method& method, Parameters& parameters, const CacheShape& shape) {
  return make_cache(method, method.make, parameters, shape);
}

Cache make_cache(const Method& method, const LayerMaker& make, Parameters& parameters, const CacheShape& shape) {
  Cache layers =
      make_layers(shape, [&](std::size_t layer) { return make_with(make, method, parameters, layer, shape); });
  parameters.select_all();
  const Prefix prefix = prefix_of(method, parameters);
  parameters.check_known();
  return Cache(std::move(layers.layers()), prefix);
}

void refuse_obstacle(const std::string& obstacle, std::string_view part, const ModelConfig& model) {
  if (!obstacle.empty())
    throw Error(ErrorCode::kUnsupported, model.name, "not possible with " + std::string(part) + ": " + obstacle);
}

std::vector<ParameterSpec> describe(const Method& method) {
  Parameters parameters = Parameters::description(1);
  (void)make_cache(method, parameters, {.layers = {{.kv_heads = 1, .head_dim = 64}}});
  return parameters.specs();
}

}  // namespace kvs::inline calibrate
