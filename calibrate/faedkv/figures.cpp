// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/figures.h"

#include <algorithm>

#include "results/faedkv_charts.h"

namespace kvs::inline calibrate {
namespace {

/// Keeps one layer's keys (in the ablation's key space) and values of head 0, and stops there.
class OneLayer final : public StateHook {
 public:
  OneLayer(std::size_t layer, bool before_rope) : layer_(layer), before_rope_(before_rope) {}

  void before_rope(LayerStates& states) override {
    if (states.layer != layer_) return;
    v = download<float, 2>(states.backend, states.v.slice(0).slice(0));
    if (before_rope_) k = download<float, 2>(states.backend, states.k.slice(0).slice(0));
  }
  void after_rope(LayerStates& states) override {
    if (states.layer == layer_ && !before_rope_) k = download<float, 2>(states.backend, states.k.slice(0).slice(0));
  }
  std::vector<float> k, v;  // [token, head_dim]

 private:
  std::size_t layer_;
  bool before_rope_;
};

/// Returns the channel that varies most along the tokens. It shows the effect of filtering best.
std::size_t liveliest_channel(const std::vector<float>& states, std::size_t tokens, std::size_t head_dim) {
  std::vector<double> variance(head_dim);
  for (std::size_t channel = 0; channel < head_dim; ++channel) {
    double sum = 0, squares = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      const double value = states[t * head_dim + channel];
      sum += value;
      squares += value * value;
    }
    variance[channel] = squares - sum * sum / static_cast<double>(tokens);
  }
  return static_cast<std::size_t>(std::ranges::max_element(variance) - variance.begin());
}

FilterEffect::Panel filter_panel(const std::string& name, const std::vector<float>& states, std::size_t head_dim,
                                 const AblationSetup& setup, std::span<const double> gains, Backend& backend,
                                 SpectralOps& ops) {
  const std::size_t tokens = states.size() / head_dim, channel = liveliest_channel(states, tokens, head_dim);
  const std::size_t samples = setup.filtered(), bins = bins_of(setup.transform, samples);
  FilterEffect::Panel panel;
  panel.title = name + ", channel " + std::to_string(channel);
  for (std::size_t t = setup.first_filtered(); t < setup.last_filtered(); ++t)
    panel.before.push_back(states[t * head_dim + channel]);
  BackendTensor<float, 3> before(backend, {1, samples, 1});
  BackendTensor<float, 4> after(backend, {1, 1, samples, 1});
  backend.upload(before.view().data(), panel.before.data(), before.bytes());
  ops.filter(before.view(), setup.transform, 0, samples, {gains, {1, bins}}, after.view());
  panel.after = download<float, 4>(backend, after.view());
  panel.energy_before.resize(bins);
  panel.energy_after.resize(bins);
  ops.power(before.view(), setup.transform, 0, panel.energy_before);
  ops.power(after.view().slice(0), setup.transform, 0, panel.energy_after);
  return panel;
}

/// Returns the states of a layer for a document before and after filtering with its kept chunks.
FilterEffect filter_effect(const std::string& heading, const AblationSetup& setup, std::size_t layer,
                           std::span<const double> gains, std::span<const std::int32_t> document, Decoder& decoder,
                           SpectralOps& ops) {
  const std::size_t head_dim = decoder.model().config().layer[layer].attention.head_dim;
  OneLayer hook(layer, setup.before_rope);
  ResidualStream hidden = decoder.embed(document.first(setup.last_filtered()));
  decoder.advance(hidden, layer + 1, &hook);
  Backend& backend = decoder.model().backend();
  const std::string place = "layer " + std::to_string(layer) + ", head 0";
  FilterEffect effect{heading, setup.first_filtered(), {}, {}};
  effect.panels.push_back(filter_panel("Keys, " + place, hook.k, head_dim, setup, gains, backend, ops));
  effect.panels.push_back(filter_panel("Values, " + place, hook.v, head_dim, setup, gains, backend, ops));
  for (std::size_t bin = 0; bin < gains.size(); ++bin) {
    if (gains[bin] != 0) continue;
    if (effect.removed.empty() || effect.removed.back().second != bin) effect.removed.push_back({bin, bin});
    effect.removed.back().second = bin + 1;
  }
  return effect;
}

}  // namespace

std::vector<draw::Figure> faedkv_figures(const FaedkvPlan& plan, const FaedkvResult& found,
                                         std::span<const std::vector<std::int32_t>> documents, Decoder& decoder,
                                         SpectralOps& ops) {
  const std::string heading = decoder.model().config().name + " · " + plan.setup.subject() + " · " +
                              std::to_string(documents.size()) + " × " + std::to_string(plan.setup.tokens) + " tokens";
  const std::size_t middle = plan.layers.size() / 2;
  const std::vector<double> gains = gains_keeping(plan.grid, found.kept[middle]);
  std::vector<draw::Figure> figures{
      {"_ablation", ablation_chart(heading, found.ablation)},
      {"_filtering",
       filter_chart(filter_effect(heading, plan.setup, plan.layers[middle], gains, documents.front(), decoder, ops))}};
  if (found.quality.sweep) figures.push_back({"_chunks", chunk_sweep_chart(heading, found.quality)});
  return figures;
}

}  // namespace kvs::inline calibrate
