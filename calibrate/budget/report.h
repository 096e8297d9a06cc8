#pragma once

#include <string>

#include "calibrate/budget/calibration.h"
#include "io/json.h"
#include "results/allocation.h"

namespace kvs {

AllocationResult allocation_result(const BudgetCalibration& found);
/// `quality` of a config: what the winner did on the documents held out; empty without them.
Json budget_quality(const BudgetCalibration& found, std::size_t tokens);
/// Why the winner was chosen: how it differs from the others on the documents held out, and whether they tell it.
std::string budget_verdict(const BudgetCalibration& found);
/// The winner's settings and size, the verdict, and which engines run it.
std::string budget_summary(const BudgetCalibration& found, std::size_t tokens, std::size_t full_bytes);

}  // namespace kvs
