// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/spectrum.h"

namespace kvs::inline results {

/// Power spectrum of one kind of state along the token axis, averaged over neighbouring bins.
struct StatePower {
  std::string key, title;                       // "k_pre", "Keys before RoPE"
  std::vector<double> bins = {};                // centres of the bands, ascending
  std::vector<std::vector<double>> power = {};  // [layer][band]
  std::vector<double> dc = {};                  // [layer]; not drawn if empty
  double last = 0;                              // last bin of the axis; 0: the last band
};

/// Position of DC on a logarithmic axis that starts with bin 1.
inline constexpr double kDcPosition = 0.55;
/// Returns the frequency axis, from DC or from bin 1 to `last`.
draw::Side bin_side(const std::string& name, double last, bool with_dc);

/// Exponents of the decades that cover the powers: one to twelve decades. Lower powers are rounding errors.
struct Decades {
  int low = 0, high = 1;
  bool operator==(const Decades&) const = default;
};
Decades decades_of(const std::vector<double>& powers);
draw::Side power_side(const Decades& decades);
inline constexpr const char* kPowerName = "power (squared units of the state)";

/// Returns the points of a curve in the order of the bins, with DC as a separate point. A logarithmic axis cannot show
/// zero power.
std::vector<draw::Point> power_points(const std::vector<double>& bins, const std::vector<double>& power, double dc);

/// Draws log power against bin (FreqKV, figures 1 and 5–7). There is one panel for each kind of state and one curve for
/// each layer, coloured by depth. All states except v share one scale.
draw::Chart power_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                        const std::vector<StatePower>& states, const std::string& bin_name);

/// Draws head × layer maps of the share of the energy in the lowest tenth of the bins, with and without DC.
draw::Chart energy_share_chart(const std::string& heading, const SpectrumResult& result);
/// Draws layer × chunk maps of the shares of a layer's energy on one logarithmic scale. States without `chunk_share`
/// have no panel.
draw::Chart energy_chunks_chart(const std::string& heading, const SpectrumResult& result);

}  // namespace kvs::inline results
