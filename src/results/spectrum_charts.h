#pragma once

#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/spectrum.h"

namespace kvs {

/// Power of one kind of state along the token axis, neighbouring bins averaged.
struct StatePower {
  std::string key, title;                       // "k_pre", "Keys before RoPE"
  std::vector<double> bins = {};                // middles of the bands, ascending
  std::vector<std::vector<double>> power = {};  // [layer][band]
  std::vector<double> dc = {};                  // [layer]; empty: not drawn
  double last = 0;                              // bin at the end of the axis; 0: the last band
};

/// Where DC is drawn on a logarithmic axis that starts with bin 1.
inline constexpr double kDcPosition = 0.55;
/// The axis of frequencies, from DC or from bin 1 to `last`.
draw::Side bin_side(const std::string& name, double last, bool with_dc);

/// Exponents of the decades around powers: at least one decade, at most twelve. Lower powers are rounding errors.
struct Decades {
  int low = 0, high = 1;
  bool operator==(const Decades&) const = default;
};
Decades decades_of(const std::vector<double>& powers);
draw::Side power_side(const Decades& decades);
inline constexpr const char* kPowerName = "power (squared units of the state)";

/// A curve's points in order of their bins, and DC apart; zero power has no place on a logarithmic axis.
std::vector<draw::Point> power_points(const std::vector<double>& bins, const std::vector<double>& power, double dc);

/// Log power against bin, one curve for each layer coloured by depth, one panel for each kind of state; both kinds of
/// keys share a scale. After FreqKV, figures 1 and 5–7.
draw::Chart power_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                        const std::vector<StatePower>& states, const std::string& bin_name);

/// Maps head × layer of the shares of the energy in the lowest tenth of the bins, with DC and without.
draw::Chart energy_share_chart(const std::string& heading, const SpectrumResult& result);
/// Maps layer × chunk of a layer's energy, all on one logarithmic scale. No panel without `chunk_share`.
draw::Chart energy_chunks_chart(const std::string& heading, const SpectrumResult& result);

}  // namespace kvs
