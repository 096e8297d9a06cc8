#include "policy/freqkv.h"

#include <cmath>

#include "kernels/dct_resample.h"

namespace kvs {
namespace {

class FreqkvCache final : public SlotCache {
 public:
  FreqkvCache(const FreqkvOptions& options, const StateStore& store)
      : SlotCache(options.slots, store), options_(options), history_(store) {}

  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = SlotCache::bytes();
    return options_.iterate ? bytes : bytes += history_.bytes();
  }

 private:
  void see(const LayerStates& states) override {
    if (options_.iterate || states.members() > 1) return;
    const std::size_t sinks = std::min(options_.slots.sinks - std::min(options_.slots.sinks, seen_), states.tokens());
    history_.append(states.backend, states.k, states.v, sinks, states.tokens() - sinks);
    seen_ += states.tokens();
  }

  TokenRows::Part compress(Backend& backend, TokenRows::Part rows) override {
    if (!options_.iterate) rows = history_.copy(backend, 0, history_.count());
    return {shrunk(backend, rows.k.view()), shrunk(backend, rows.v.view())};
  }

  BackendTensor<float, 4> shrunk(Backend& backend, const BackendView<float, 4>& rows) const {
    const auto [members, heads, count, head_dim] = rows.shape();
    const std::vector<float> states = download(backend, rows);
    const std::vector<float> kept =
        freqkv_compress({states, {heads, count, head_dim}}, options_.slots.kept(), options_);
    BackendTensor<float, 4> result(backend, {members, heads, options_.slots.kept(), head_dim});
    backend.upload(result.view().data(), kept.data(), result.bytes());
    return result;
  }

  FreqkvOptions options_;
  TokenRows history_;  // without iteration: every token after the sinks
  std::size_t seen_ = 0;
};

std::unique_ptr<LayerCache> make_freqkv(Parameters& parameters, const CacheLayer& layer) {
  static constexpr std::string_view kBands[] = {"low", "high"};
  FreqkvOptions options;
  options.slots = slot_options(parameters);
  options.high_band = parameters.choice("band", kBands) == 1;
  options.rescale = parameters.on_off("rescale", options.rescale);
  options.iterate = parameters.on_off("iterate", options.iterate);
  return make_freqkv_cache(options, layer.store);
}

}  // namespace

std::vector<float> freqkv_compress(TensorView<const float, 3> states, std::size_t kept, const FreqkvOptions& options) {
  const auto [heads, tokens, head_dim] = states.shape();
  const double scale = options.rescale ? std::sqrt(static_cast<double>(kept) / static_cast<double>(tokens)) : 1.0;
  std::vector<float> result(heads * kept * head_dim);
  for (std::size_t head = 0; head < heads; ++head)
    dct_resample(states.slice(head), options.high_band ? tokens - kept : 0, scale,
                 {std::span(result).subspan(head * kept * head_dim, kept * head_dim), {kept, head_dim}});
  return result;
}

std::size_t freqkv_compressions(std::size_t tokens, const SlotOptions& options) {
  const std::size_t freed = options.compressible() - options.kept();
  return tokens <= options.cache_size ? 0 : (tokens - options.cache_size + freed - 1) / freed;
}

std::unique_ptr<LayerCache> make_freqkv_cache(const FreqkvOptions& options, const StateStore& store) {
  return std::make_unique<FreqkvCache>(options, store);
}

constinit const CacheMethod kFreqkvMethod{"freqkv", Prefill::kStepwise, make_freqkv};

}  // namespace kvs
