#include "analyzers/figures/bands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace kvs {
namespace {

constexpr double kRounding = 1e-20;  // in squared units of states, which are of order 1

}  // namespace

std::vector<Band> log_bands(std::span<const double> power, std::size_t per_octave) {
  std::vector<Band> bands;
  const auto steps = static_cast<double>(per_octave);
  std::size_t bin = 1;
  while (bin < power.size()) {
    const double band = std::floor(std::log2(static_cast<double>(bin)) * steps + 1e-9);
    double sum = 0, log_sum = 0;
    std::size_t count = 0;
    while (bin < power.size() && std::floor(std::log2(static_cast<double>(bin)) * steps + 1e-9) == band) {
      sum += power[bin];
      log_sum += std::log(static_cast<double>(bin));
      ++count;
      ++bin;
    }
    bands.push_back({std::exp(log_sum / static_cast<double>(count)), sum / static_cast<double>(count)});
  }
  return bands;
}

void add_curve(FigureData& data, std::span<const double> power, std::size_t per_octave, double extra) {
  // Zero power has no place on a logarithmic axis: a gap.
  const auto drawn = [](double value) { return value > 0 ? value : std::numeric_limits<double>::quiet_NaN(); };
  data.row({kDcPosition, drawn(power[0]), extra});
  data.blank();
  for (const Band& band : log_bands(power, per_octave)) data.row({band.bin, drawn(band.power), extra});
  data.next_block();
}

Decades decades_of(const Spectrum& spectrum, StateKind state, bool with_sinks) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const StateKind other : spectrum.states) {
    if ((other == StateKind::kV) != (state == StateKind::kV)) continue;
    for (const double value : spectrum.table(other, with_sinks).values) {
      // The rounding that is left of a constant channel must not squeeze the other curves.
      if (value > kRounding) least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  if (most <= kRounding) return {};
  const int high = static_cast<int>(std::ceil(std::log10(most)));
  return {std::min(high - 1, std::max(high - 12, static_cast<int>(std::floor(std::log10(least))))), high};
}

Decades around(const Decades& a, const Decades& b) noexcept {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

std::string spectrum_subject(const Spectrum& spectrum, std::string_view model_name, bool with_sinks) {
  std::string text(model_name);
  text += with_sinks || spectrum.sinks == 0
              ? ", all " + std::to_string(spectrum.tokens) + " tokens"
              : ", tokens " + std::to_string(spectrum.sinks) + " to " + std::to_string(spectrum.tokens - 1);
  return text + ", " + std::to_string(spectrum.documents) + (spectrum.documents == 1 ? " document" : " documents");
}

std::string bin_axis(const Spectrum& spectrum, bool with_sinks) {
  const std::size_t samples = spectrum.tokens - (with_sinks ? 0 : spectrum.sinks);
  return spectrum.transform == Transform::kDct ? "DCT bin k  (k/" + std::to_string(2 * samples) + " cycles per token)"
                                               : "DFT bin k  (k/" + std::to_string(samples) + " cycles per token)";
}

std::string_view title_of(StateKind state) noexcept {
  constexpr ByState<std::string_view> kTitles{{"Queries before RoPE", "Keys before RoPE", "Keys after RoPE", "Values"}};
  return kTitles[state];
}

}  // namespace kvs
