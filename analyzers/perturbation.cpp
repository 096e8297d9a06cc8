// SPDX-License-Identifier: Apache-2.0
#include "analyzers/perturbation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/interrupt.h"

namespace kvs::inline analyzers {
namespace {

using States = BackendView<const float, 3>;  // [head, token, head_dim]

/// Returns DCT power by bin, summed over all heads.
std::vector<double> power_of(SpectralOps& ops, const States& states) {
  const auto [heads, tokens, head_dim] = states.shape();
  std::vector<double> rows(heads * tokens), power(tokens);
  ops.power(states, Transform::kDct, 0, rows);
  for (std::size_t n = 0; n < rows.size(); ++n) power[n % tokens] += rows[n];
  return power;
}

std::span<const double> bins_of(BinBand band, std::span<const double> power) {
  const std::size_t half = power.size() / 2;
  if (band == BinBand::kHigh) return power.subspan(half);
  return band == BinBand::kLow ? power.first(half) : power.first(half).subspan(1);
}

double energy(BinBand band, std::span<const double> power) {
  const std::span<const double> bins = bins_of(band, power);
  return std::accumulate(bins.begin(), bins.end(), 0.0);
}

// ⟨X, Y⟩ = (|X|² + |Y|² − |X − Y|²)/2 needs only powers and is exact for equal versions.
BandSimilarity similarity(SpectralOps& ops, DeviceMemory& device, std::span<const float> x, const States& y) {
  std::vector<float> other = download(device, y), difference(x.size());
  std::ranges::transform(x, other, difference.begin(), std::minus<>());
  const auto power_of_host = [&](std::span<const float> values) {
    BackendTensor<float, 3> states(device, y.shape());
    device.upload(states.view().data(), values.data(), values.size_bytes());
    return power_of(ops, states.view());
  };
  const auto of_x = power_of_host(x), of_y = power_of(ops, y), of_difference = power_of_host(difference);
  BandSimilarity result;
  for (const BinBand band : kBinBands) {
    const double a = energy(band, of_x), b = energy(band, of_y), d = energy(band, of_difference);
    const double product = std::sqrt(a) * std::sqrt(b);
    result[static_cast<std::size_t>(band)] = product != 0 ? (a + b - d) / (2 * product) : a == b ? 1.0 : 0.0;
  }
  return result;
}

void check_finite(const ByState<BandSimilarity>& of_layer, const DocumentStates& states) {
  for (const StateKind state : kPerturbedStates)
    if (!std::ranges::all_of(of_layer[state], [](double value) { return std::isfinite(value); }))
      throw Error(ErrorCode::kData, "document " + std::to_string(states.document),
                  std::string(name_of(state)) + " of layer " + std::to_string(states.layer) +
                      " has NaN, infinity or a square above the range of numbers");
}

}  // namespace

std::vector<ByState<BandSimilarity>> compare_versions(SpectralOps& ops, StateSource& original, StateSource& perturbed,
                                                      std::size_t document, std::span<const std::size_t> layers) {
  const StateNeeds needs{.layers = {layers.begin(), layers.end()},
                         .states = {kPerturbedStates.begin(), kPerturbedStates.end()}};
  std::vector<ByState<std::vector<float>>> held;  // [layer]
  original.visit(document, needs, [&](const DocumentStates& states) {
    check_interrupt();
    ByState<std::vector<float>>& of_layer = held.emplace_back();
    for (const StateKind state : kPerturbedStates) of_layer[state] = download(original.backend(), states[state]);
  });
  std::vector<ByState<BandSimilarity>> result;
  perturbed.visit(document, needs, [&](const DocumentStates& states) {
    check_interrupt();
    const std::size_t layer = result.size();
    ByState<BandSimilarity>& of_layer = result.emplace_back();
    for (const StateKind state : kPerturbedStates) {
      if (held.at(layer)[state].size() != states[state].size())
        throw Error(ErrorCode::kInternal, "perturbation", "the versions of a document differ in their states' shape");
      of_layer[state] = similarity(ops, perturbed.backend(), held[layer][state], states[state]);
    }
    check_finite(of_layer, states);
    held[layer] = {};
  });
  return result;
}

}  // namespace kvs::inline analyzers
