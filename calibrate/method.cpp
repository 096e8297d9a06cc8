#include "calibrate/method.h"

#include <utility>

#include "caches/full.h"

namespace kvs {
namespace {

Prefix prefix_of(const Method& method, Parameters& parameters) {
  static constexpr std::string_view kStepwiseFirst[] = {"stepwise", "whole"}, kWholeFirst[] = {"whole", "stepwise"};
  const bool must = method.prefill == Prefill::kWhole;
  Prefix prefix{parameters.count("prefix", "first tokens, which are not scored", 0, must ? 1 : 0)};
  prefix.whole =
      (parameters.choice("prefill", "whole: the prefix attends to all of itself and is compressed once, at its end",
                         must ? kWholeFirst : kStepwiseFirst) == 0) == must;
  if (prefix.whole && prefix.tokens == 0)
    parameters.refuse("prefix", "found 0, expected the tokens of a whole prefill");
  if (prefix.whole && method.prefill == Prefill::kStepwise)
    parameters.refuse("prefill", "found whole, expected stepwise: the method acts while the prefix goes in");
  if (!prefix.whole && must)
    parameters.refuse("prefill", "found stepwise, expected whole: the method acts at the prefix's end alone");
  return prefix;
}

}  // namespace

std::unique_ptr<LayerCache> make_layer_cache(const Method& method, Parameters& parameters, std::size_t layer,
                                             const CacheShape& shape) {
  if (!parameters.select(layer)) return make_full_cache();
  const KvTypes types = method.rows ? read_kv_types(parameters, layer, shape) : KvTypes{};
  std::unique_ptr<LayerCache> cache = method.make(parameters, {layer, shape, types});
  const bool windowed = !shape.windows.empty() && shape.windows[layer] != 0;
  return windowed ? make_full_cache(types) : std::move(cache);
}

Cache make_cache(const Method& method, Parameters& parameters, const CacheShape& shape) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (std::size_t layer = 0; layer < parameters.layers(); ++layer)
    layers.push_back(make_layer_cache(method, parameters, layer, shape));
  parameters.select_all();
  const Prefix prefix = prefix_of(method, parameters);
  parameters.check_known();
  return Cache(std::move(layers), prefix);
}

std::vector<ParameterSpec> describe(const Method& method) {
  Parameters parameters = Parameters::description(1);
  (void)make_cache(method, parameters, {.kv_heads = 1, .head_dim = 64});
  return parameters.specs();
}

}  // namespace kvs
