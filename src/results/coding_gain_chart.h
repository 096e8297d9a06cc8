#pragma once

#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// What each step of a transform coder saves of one kind of state, beyond the steps before it.
struct StateGainSteps {
  std::string key, title;
  std::vector<std::vector<double>> steps;  // [step][layer] bits a real; empty: not measured
};

/// Bars by layer, the steps stacked, one panel for each state.
draw::Chart coding_gain_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                              const std::vector<std::string>& step_names, const std::vector<StateGainSteps>& states);

}  // namespace kvs
