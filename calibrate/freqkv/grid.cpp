// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "calibrate/calibration.h"
#include "calibrate/freqkv/cache.h"

namespace kvs::inline calibrate {
namespace {

std::vector<Json> freqkv_standards() { return {{{"gamma", 0.5}, {"sinks", 4}}}; }

/// Recent slots are not compressed. With the large γ the other slots are compressed often, by little each time.
std::vector<Json> freqkv_settings(const BudgetRoom& room) {
  constexpr std::array kRecent{0.5, 0.75, 0.85, 0.9};
  return combinations({shares_of("recent", room.rows, kRecent), {"gamma", {0.95}}, {"sinks", {4, 16}}});
}

/// Returns the share of a layer's energy (without DC) that is lost if only the lowest m of its bins are kept: [m], the
/// mean of keys and values.
std::vector<double> lost_energy(const Spectrum& spectrum, StateKind keys, std::size_t layer) {
  std::vector<double> lost;
  for (const StateKind state : {keys, StateKind::kV}) {
    std::vector<double> above = spectrum.table(state, false).layer_mean(layer);
    above.push_back(0);
    for (std::size_t bin = above.size() - 1; bin-- > 0;) above[bin] += above[bin + 1];
    const double all = above.size() > 1 ? above[1] : 0;
    lost.resize(above.size());
    for (std::size_t m = 1; m < above.size() && all > 0; ++m) lost[m] += above[m] / all / 2;
  }
  return lost;
}

/// Returns the share of its bins that each layer needs to lose at most `loss`.
std::vector<double> needed_shares(const std::vector<std::vector<double>>& lost, double loss) {
  std::vector<double> shares;
  for (const std::vector<double>& of_layer : lost) {
    const auto few = std::find_if(of_layer.begin() + 1, of_layer.end(), [&](double l) { return l <= loss; });
    shares.push_back(static_cast<double>(few - of_layer.begin()) / static_cast<double>(of_layer.size() - 1));
  }
  return shares;
}

/// Returns shares with which all layers lose equally and whose mean is `mean`.
std::vector<double> equal_losses(const std::vector<std::vector<double>>& lost, double mean) {
  const double all = mean * static_cast<double>(lost.size());
  double low = 0, high = 1;
  for (int halving = 0; halving < 50; ++halving) {
    const double middle = (low + high) / 2;
    const std::vector<double> shares = needed_shares(lost, middle);
    (std::accumulate(shares.begin(), shares.end(), 0.0) > all ? low : high) = middle;
  }
  return needed_shares(lost, high);
}

/// Returns the shortest decimal with which `slots` slots keep `kept`.
double gamma_of(std::size_t kept, std::size_t slots) {
  for (double unit = 10;; unit *= 10) {
    const double units = static_cast<double>(kept) * unit / static_cast<double>(slots);
    for (const double whole : {std::ceil(units), std::floor(units) + 1})
      if (static_cast<std::size_t>(whole / unit * static_cast<double>(slots)) == kept) return whole / unit;
  }
}

/// Returns γ by layer. Every layer keeps the share of its compressed slots at which all layers lose the same share of
/// their energy. The mean over layers is that of the γ in `settings`. A γ costs no bytes: a layer holds all of its
/// slots before it compresses. The spectra are those of whole documents. A compression's signal is shorter, and most of
/// it was smoothed before; the shares of bins are used without correction. No γ is proposed for the high band, nor if
/// layers differ in another parameter.
std::vector<Json> gamma_by_spectra(const Spectrum& spectrum, Parameters& settings) {
  std::vector<FreqkvOptions> by_layer;
  for (const std::size_t layer : spectrum.layers) {
    settings.select(layer);
    by_layer.push_back(freqkv_options(settings));
  }
  const SlotOptions& options = by_layer.front().slots;
  const std::size_t slots = options.compressible(), recent = by_layer.front().recent;
  std::vector<Json> all(by_layer.size(), options.gamma);
  const auto differs = [&](const FreqkvOptions& one) {
    return one.high_band || one.slots != options || one.recent != recent;
  };
  if (std::ranges::any_of(by_layer, differs)) return all;
  const auto smoothed = static_cast<double>(slots - recent);
  const StateKind keys = options.slots ? StateKind::kKPre : StateKind::kKPost;
  std::vector<std::vector<double>> lost;
  for (std::size_t n = 0; n < spectrum.layers.size(); ++n) lost.push_back(lost_energy(spectrum, keys, n));
  const std::vector<double> shares = equal_losses(lost, static_cast<double>(options.kept() - recent) / smoothed);
  for (std::size_t n = 0; n < all.size(); ++n) {
    const auto wanted = recent + static_cast<std::size_t>(std::lround(shares[n] * smoothed)),
               kept = std::clamp(wanted, recent + 1, slots - 1);
    if (kept != options.kept()) all[n] = gamma_of(kept, slots);
  }
  return all;
}

}  // namespace

constinit const Calibration kFreqkvCalibration{.method = &kFreqkvMethod,
                                               .grid = {.standards = freqkv_standards,
                                                        .settings = freqkv_settings,
                                                        .proposal = {"gamma", gamma_by_spectra},
                                                        .priority = 2}};

}  // namespace kvs::inline calibrate
