// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/budget/calibration.h"
#include "io/json.h"
#include "results/allocation.h"

namespace kvs::inline calibrate {

AllocationResult allocation_result(const BudgetCalibration& found);
/// Returns `quality` of a config: the winner's results on the held-out documents; empty without them.
Json budget_quality(const BudgetCalibration& found, std::size_t tokens);
/// Returns the reason for the choice: the winner's difference from the others on the held-out documents, and whether it
/// is distinguishable.
std::string budget_verdict(const BudgetCalibration& found);
/// Returns the winner's settings and size, the verdict, and the engines that run it.
std::string budget_summary(const BudgetCalibration& found, std::size_t tokens, std::size_t full_bytes);

}  // namespace kvs::inline calibrate
