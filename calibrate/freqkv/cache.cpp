// SPDX-License-Identifier: Apache-2.0
#include "calibrate/freqkv/cache.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "calibrate/method.h"
#include "kernels/spectral_ops.h"

namespace kvs::inline calibrate {
namespace {

/// Keeps low frequencies along the token axis. The N slots after the sinks become L = ⌊γN⌋ pseudo-tokens, channel by
/// channel, for the keys before RoPE (without slots: the rotated keys) and for the values. Source: FreqKV, equations 4
/// to 6. Deviation: with R = `recent` above 0 the last R slots are not part of the signal: the N − R slots before them
/// become L − R pseudo-tokens.
class FreqkvCache final : public SlotCache {
 public:
  FreqkvCache(const FreqkvOptions& options, const KvTypes& types)
      : SlotCache(options.slots, types), options_(options), history_(types) {}

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

  /// Computes y = √(L/N) · IDCT_L(DCT_N(x)[0:L]), both orthonormal, per channel, for all rows except the recent ones.
  BackendTensor<float, 4> shrunk(Backend& backend, const BackendView<float, 4>& rows) const {
    const auto [members, heads, count, head_dim] = rows.shape();
    const std::size_t kept = options_.slots.kept(), from = count - options_.recent, to = kept - options_.recent;
    const double scale = options_.rescale ? std::sqrt(static_cast<double>(to) / static_cast<double>(from)) : 1.0;
    const std::vector<float> states = download(backend, rows);
    std::vector<float> shrunk(heads * kept * head_dim);
    const auto ops = backend.make_spectral_ops();
    for (std::size_t head = 0; head < heads; ++head) {
      const std::span all = std::span(states).subspan(head * count * head_dim, count * head_dim);
      const std::span out = std::span(shrunk).subspan(head * kept * head_dim, kept * head_dim);
      ops->dct_resample({all.first(from * head_dim), {from, head_dim}}, options_.high_band ? from - to : 0, scale,
                        {out.first(to * head_dim), {to, head_dim}});
      std::ranges::copy(all.subspan(from * head_dim), out.subspan(to * head_dim).begin());
    }
    BackendTensor<float, 4> result(backend, {members, heads, kept, head_dim});
    backend.upload(result.view().data(), shrunk.data(), result.bytes());
    return result;
  }

  FreqkvOptions options_;
  TokenRows history_;  // without iteration: all tokens after the sinks
  std::size_t seen_ = 0;
};

std::unique_ptr<LayerCache> make_freqkv(Parameters& parameters, const CacheLayer& layer) {
  return std::make_unique<FreqkvCache>(freqkv_options(parameters), layer.types);
}

}  // namespace

FreqkvOptions freqkv_options(Parameters& parameters) {
  static constexpr std::string_view kBands[] = {"low", "high"};
  FreqkvOptions options;
  options.slots = slot_options(parameters);
  options.high_band =
      parameters.choice("band", "DCT coefficients that stay; high: the worst case of the paper", kBands) == 1;
  options.rescale = parameters.on_off(
      "rescale", "multiply by the square root of the share of slots, which keeps a constant signal", options.rescale);
  options.recent =
      parameters.count("recent", "last slots, which stay uncompressed (not in the paper)", options.recent, 0);
  if (options.recent >= options.slots.kept())
    parameters.refuse("recent", "found " + std::to_string(options.recent) + ", expected fewer than the " +
                                    std::to_string(options.slots.kept()) + " slots that a compression keeps");
  options.iterate = parameters.on_off(
      "iterate", "on: compress the cached slots; off: compress the whole history each time, and keep it as well",
      options.iterate);
  return options;
}

constinit const Method kFreqkvMethod{
    .name = "freqkv",
    .title = "FreqKV",
    .summary = "the low DCT frequencies of the cached tokens, in slots",
    .paper = {.authors = "Kai, Zeng, Wang, Bai, He, Jiang, Lin",
              .title = "FreqKV: Frequency Domain Key-Value Compression for Efficient Context Window Extension",
              .link = "https://arxiv.org/abs/2505.00570",
              .year = 2025},
    .make = make_freqkv,
    .settings_for_share = cache_size_for_share,
    .priority = 4,
};

}  // namespace kvs::inline calibrate
