// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kvs::inline calibrate {

/// Returns the methods in the order that determines their colours and marks in charts, so that a method looks the same
/// everywhere. kQuantisedAlone (results/pareto_chart.h) is the first.
std::vector<std::string> method_order();

}  // namespace kvs::inline calibrate
