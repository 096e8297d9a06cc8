#pragma once

#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// The gain of each step of a transform coder for one kind of state, in addition to the steps before it.
struct StateGainSteps {
  std::string key, title;
  std::vector<std::vector<double>> steps;  // [step][layer] bits a real; empty: not measured
};

/// Bars by layer, the steps stacked, one panel for each state.
draw::Chart coding_gain_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                              const std::vector<std::string>& step_names, const std::vector<StateGainSteps>& states);

}  // namespace kvs
