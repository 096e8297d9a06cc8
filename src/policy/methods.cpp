#include "policy/methods.h"

#include <algorithm>
#include <array>

#include "policy/dropping.h"
#include "policy/freqkv.h"
#include "policy/full.h"
#include "policy/l2norm.h"
#include "policy/lagkv.h"
#include "policy/streaming.h"

namespace kvs {
namespace {

constexpr std::size_t kRequired = 0;  // as a standard below the least value

SlotOptions slot_options(Parameters& parameters) {
  static constexpr std::string_view kRope[] = {"pre", "post"};
  SlotOptions options;
  options.sinks = parameters.count("sinks", options.sinks, 0);
  options.cache_size = parameters.count("cache_size", kRequired, options.sinks + 2);
  options.gamma = parameters.real("gamma", options.gamma, 0, 1);
  options.slots = parameters.choice("rope", kRope) == 0;
  if (options.kept() == 0 || options.kept() == options.compressible())
    parameters.refuse("gamma", "found " + Json(options.gamma).dump() + ", which keeps " +
                                   std::to_string(options.kept()) + " of " + std::to_string(options.compressible()) +
                                   " slots, expected one that keeps some and frees some");
  return options;
}

std::unique_ptr<LayerCache> full(Parameters&, std::size_t) { return make_full_cache(); }

std::unique_ptr<LayerCache> streaming(Parameters& parameters, std::size_t) {
  StreamingOptions options;
  options.sinks = parameters.count("sinks", options.sinks, 0);
  options.cache_size = parameters.count("cache_size", kRequired, options.sinks + 1);
  return make_streaming_cache(options);
}

std::unique_ptr<LayerCache> dropping(Parameters& parameters, std::size_t) {
  return make_dropping_cache(slot_options(parameters));
}

std::unique_ptr<LayerCache> freqkv(Parameters& parameters, std::size_t) {
  static constexpr std::string_view kBands[] = {"low", "high"};
  FreqkvOptions options;
  options.slots = slot_options(parameters);
  options.high_band = parameters.choice("band", kBands) == 1;
  options.rescale = parameters.on_off("rescale", options.rescale);
  options.iterate = parameters.on_off("iterate", options.iterate);
  return make_freqkv_cache(options);
}

std::unique_ptr<LayerCache> lagkv(Parameters& parameters, std::size_t layer) {
  static constexpr std::string_view kVariants[] = {"lag", "local", "l2"};
  constexpr std::size_t kUntouchedByL2 = 2;  // layers
  LagkvOptions options;
  options.sinks = parameters.count("sinks", options.sinks, 0);
  options.lag = parameters.count("lag", options.lag, 1);
  options.ratio = parameters.real("ratio", options.ratio, 0, 1);
  options.variant = static_cast<LagkvVariant>(parameters.choice("variant", kVariants));
  if (options.variant == LagkvVariant::kL2 && layer < kUntouchedByL2) return make_full_cache();
  return make_lagkv_cache(options);
}

std::unique_ptr<LayerCache> l2norm(Parameters& parameters, std::size_t layer) {
  const double ratio = parameters.real("ratio", 0.5, 0, 1);
  const auto skipped = parameters.indices("skip_layers", {0, 1}, parameters.layers());
  if (std::ranges::find(skipped, layer) != skipped.end()) return make_full_cache();
  return make_l2norm_cache(ratio);
}

Prefix prefix_of(const CacheMethod& method, Parameters& parameters) {
  static constexpr std::string_view kModes[] = {"", "stepwise", "whole"};
  const bool must = method.prefill == Prefill::kWhole;
  Prefix prefix{parameters.count("prefix", 0, must ? 1 : 0)};
  const std::size_t mode = parameters.choice("prefill", kModes);
  prefix.whole = mode == 0 ? must : mode == 2;
  if (prefix.whole && prefix.tokens == 0)
    parameters.refuse("prefix", "found 0, expected the tokens of a whole prefill");
  if (prefix.whole && method.prefill == Prefill::kStepwise)
    parameters.refuse("prefill", "found whole, expected stepwise: the method acts while the prefix goes in");
  if (!prefix.whole && must)
    parameters.refuse("prefill", "found stepwise, expected whole: the method acts at the prefix's end alone");
  return prefix;
}

constexpr std::array kMethods{
    CacheMethod{"full", "", full, Prefill::kEither},
    CacheMethod{"streaming", "cache_size sinks", streaming, Prefill::kStepwise},
    CacheMethod{"dropping", "cache_size sinks gamma rope=pre|post", dropping, Prefill::kStepwise},
    CacheMethod{"freqkv", "cache_size sinks gamma band=low|high rescale=on|off rope=pre|post iterate=on|off", freqkv,
                Prefill::kStepwise},
    CacheMethod{"lagkv", "sinks lag ratio variant=lag|local|l2", lagkv, Prefill::kEither},
    CacheMethod{"l2norm", "ratio skip_layers", l2norm, Prefill::kWhole},
};

}  // namespace

std::span<const CacheMethod> cache_methods() noexcept { return kMethods; }

const CacheMethod* find_cache_method(std::string_view name) noexcept {
  const auto found = std::ranges::find(kMethods, name, &CacheMethod::name);
  return found == kMethods.end() ? nullptr : &*found;
}

Cache make_cache(const CacheMethod& method, Parameters& parameters, std::span<const std::size_t> windows) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (std::size_t layer = 0; layer < parameters.layers(); ++layer) {
    parameters.select(layer);
    std::unique_ptr<LayerCache> cache = method.make(parameters, layer);
    const bool windowed = !windows.empty() && windows[layer] != 0;
    layers.push_back(windowed ? make_full_cache() : std::move(cache));
  }
  const Prefix prefix = prefix_of(method, parameters);
  parameters.check_known();
  return Cache(std::move(layers), prefix);
}

}  // namespace kvs
