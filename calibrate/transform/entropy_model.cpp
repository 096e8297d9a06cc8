// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/entropy_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace kvs::inline calibrate {
namespace {

/// Parity-check polynomials of the code of eight states. Source: Ungerboeck (1987), IEEE Communications Magazine 25(2),
/// table I.
constexpr std::uint32_t kParity0 = 013, kParity1 = 04;

constexpr auto kNextState = [] {
  constexpr std::uint32_t kBits = 3;
  std::array<std::array<std::uint8_t, 2>, kTrellisStates> next{};
  for (std::uint32_t state = 0; state < kTrellisStates; ++state)
    for (std::uint32_t parity = 0; parity < 2; ++parity) {
      std::uint32_t to = 0;
      for (std::uint32_t i = 0; i < kBits; ++i) {
        std::uint32_t bit = i + 1 < kBits ? state >> (i + 1) & 1 : 0;
        bit ^= kParity0 >> (i + 1) & state & 1;
        bit ^= kParity1 >> (i + 1) & parity & 1;
        to |= bit << i;
      }
      next[state][parity] = static_cast<std::uint8_t>(to);
    }
  return next;
}();

/// Returns multiples of 2^-12 near the probabilities: at least one each, with the sum 2^12.
void set_frequencies(std::span<const double> probabilities, std::span<std::uint16_t> frequencies) {
  const double sum = std::reduce(probabilities.begin(), probabilities.end());
  std::uint32_t left = kFrequencySum;
  for (std::size_t n = 0; n < frequencies.size(); ++n) {
    const double share = probabilities[n] / sum * static_cast<double>(kFrequencySum - frequencies.size());
    frequencies[n] = static_cast<std::uint16_t>(1 + static_cast<std::uint32_t>(share));
    left -= frequencies[n];
  }
  *std::ranges::max_element(frequencies) += static_cast<std::uint16_t>(left);
}

std::size_t value_index(std::size_t scale, std::size_t quantiser, std::size_t level) {
  return (scale * kQuantisers + quantiser) * kLevels + level;
}

/// Sets the expected magnitudes of some scales. @param shares  [scale, quantiser, level]; a scale without any keeps its
void set_expected(std::span<const double> shares, EntropyModel& model) {
  for (std::size_t scale = 0; scale < kScaleClasses; ++scale) {
    double sum = 0, weight = 0;
    for (std::size_t at = value_index(scale, 0, 0); at < value_index(scale + 1, 0, 0); ++at) {
      sum += shares[at] * static_cast<double>(model.values[at]);
      weight += shares[at];
    }
    constexpr double kFew = 50;
    if (weight >= kFew) model.expected[scale] = static_cast<std::uint32_t>(sum / weight * kMagnitudeUnit);
  }
}

}  // namespace

float EntropyModel::value(std::size_t scale, std::int32_t magnitude) const noexcept {
  const std::int32_t size = std::abs(magnitude);
  const std::uint32_t level = level_of(size), held = std::min<std::uint32_t>(level, kLevels - 1);
  const float value =
      values[value_index(scale, static_cast<std::size_t>(size % 2), held)] + 2 * static_cast<float>(level - held);
  return magnitude < 0 ? -value : value;
}

std::uint32_t next_state(std::uint32_t state, std::uint32_t level) noexcept { return kNextState[state][level % 2]; }

std::size_t scale_class(double deviation) noexcept {
  const double quarter = std::floor((std::log2(deviation) - kMinScale) * 4);
  if (!(quarter >= 0)) return kScaleClasses;
  return static_cast<std::size_t>(std::min(quarter, static_cast<double>(kScaleClasses - 1)));
}

std::size_t TokenContext::of(std::size_t coefficient, std::size_t scale) const noexcept {
  return ((scale * kRatioClasses + ratio()) * kPastClasses + past(coefficient, scale)) * kQuantisers;
}

void TokenContext::add(std::size_t scale, std::int32_t magnitude) noexcept {
  constexpr std::uint64_t kDecay = 32;  // coefficients
  found_ += static_cast<std::uint64_t>(magnitude) * kMagnitudeUnit - found_ / kDecay;
  expected_ += model_->expected[scale] + 1 - expected_ / kDecay;
}

std::size_t TokenContext::ratio() const noexcept {
  constexpr std::array<std::uint64_t, kRatioClasses - 1> kBounds{9, 13, 17, 22, 29, 42};  // in twentieths
  std::size_t index = 0;
  while (index < kBounds.size() && 20 * found_ >= kBounds[index] * expected_) ++index;
  return index;
}

std::size_t TokenContext::past(std::size_t coefficient, std::size_t scale) const noexcept {
  if (before_.empty()) return kPastClasses - 1;
  const auto size = [&](std::span<const std::int32_t> of) {
    return static_cast<std::uint64_t>(of.empty() ? std::abs(before_[coefficient]) : std::abs(of[coefficient]));
  };
  const std::uint64_t mean = 3 * size(before_) + 2 * size(earlier_), unit = model_->expected[scale] + 5;
  if (mean == 0) return 0;
  if (kMagnitudeUnit * mean < 4 * unit) return 1;
  return kMagnitudeUnit * mean < 10 * unit ? 2 : 3;
}

EntropyModel laplacian_model() {
  EntropyModel model{std::vector<std::uint16_t>(EntropyModel::kContexts * kLevels),
                     std::vector<std::uint32_t>(kScaleClasses),
                     std::vector<float>(kScaleClasses * kQuantisers * kLevels)};
  std::vector<double> shares(model.values.size());
  for (std::size_t scale = 0; scale < kScaleClasses; ++scale) {
    const double deviation = std::exp2((static_cast<double>(scale) + 0.5) / 4 + kMinScale);
    const auto above = [&](double x) { return std::exp(-std::sqrt(2.0) * x / deviation); };
    for (std::size_t quantiser = 0; quantiser < kQuantisers; ++quantiser) {
      std::array<double, kLevels> probabilities{};
      double from = 1;
      for (std::size_t level = 0; level < kLevels; ++level) {
        const std::int32_t size =
            magnitude_of(static_cast<std::uint32_t>(quantiser), static_cast<std::uint32_t>(level));
        const std::int32_t next =
            magnitude_of(static_cast<std::uint32_t>(quantiser), static_cast<std::uint32_t>(level + 1));
        const double to = level + 1 == kLevels ? 0 : above((size + next) / 2.0 + 0.2);
        probabilities[level] = std::max(from - to, 1e-6);
        from = to;
        const std::size_t at = value_index(scale, quantiser, level);
        model.values[at] = static_cast<float>(size);
        shares[at] = quantiser == 0 ? 1e3 * probabilities[level] : 0;
      }
      for (std::size_t context = 0; context < kRatioClasses * kPastClasses; ++context)
        set_frequencies(
            probabilities,
            std::span(model.frequencies)
                .subspan(((scale * kRatioClasses * kPastClasses + context) * kQuantisers + quantiser) * kLevels,
                         kLevels));
    }
  }
  set_expected(shares, model);
  return model;
}

LevelCounts::LevelCounts()
    : counts(EntropyModel::kContexts * kLevels),
      sums(kScaleClasses * kQuantisers * kLevels),
      weights(kScaleClasses * kQuantisers * kLevels) {}

void LevelCounts::add(std::size_t context, std::size_t scale, std::uint32_t quantiser, std::int32_t magnitude,
                      float wanted) {
  const std::uint32_t level = level_of(magnitude), held = std::min<std::uint32_t>(level, kLevels - 1);
  counts[context * kLevels + held] += 1;
  const std::size_t at = value_index(scale, quantiser, held);
  sums[at] += static_cast<double>(wanted) - 2.0 * (level - held);
  weights[at] += 1;
}

LevelCounts& LevelCounts::operator+=(const LevelCounts& other) {
  const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
    std::ranges::transform(to, from, to.begin(), std::plus<>());
  };
  add(counts, other.counts);
  add(sums, other.sums);
  add(weights, other.weights);
  return *this;
}

EntropyModel LevelCounts::model(const EntropyModel& previous) const {
  constexpr double kPrior = 8, kFew = 20;
  EntropyModel model = previous;
  constexpr std::size_t kOfScale = kRatioClasses * kPastClasses;
  for (std::size_t scale = 0; scale < kScaleClasses; ++scale)
    for (std::size_t quantiser = 0; quantiser < kQuantisers; ++quantiser) {
      const auto at = [&](std::size_t n) { return ((scale * kOfScale + n) * kQuantisers + quantiser) * kLevels; };
      std::array<double, kLevels> all{};
      for (std::size_t level = 0; level < kLevels; ++level) {
        all[level] = previous.frequencies[at(0) + level] / (2.0 * kFrequencySum);
        for (std::size_t n = 0; n < kOfScale; ++n) all[level] += counts[at(n) + level];
      }
      const double total = std::reduce(all.begin(), all.end());
      for (std::size_t n = 0; n < kOfScale; ++n) {
        std::array<double, kLevels> shares{};
        for (std::size_t level = 0; level < kLevels; ++level)
          shares[level] = counts[at(n) + level] + kPrior * all[level] / total;
        set_frequencies(shares, std::span(model.frequencies).subspan(at(n), kLevels));
      }
    }
  for (std::size_t at = 0; at < weights.size(); ++at)
    if (at % kLevels > 0 && weights[at] > kFew)
      model.values[at] = std::clamp(static_cast<float>(sums[at] / weights[at]), 0.0F, kMostValue);
  set_expected(weights, model);
  return model;
}

}  // namespace kvs::inline calibrate
