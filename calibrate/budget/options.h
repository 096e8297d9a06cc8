// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "calibrate/budget/calibration.h"
#include "model/model.h"
#include "options/options.h"

namespace kvs::inline calibrate {

/// Adds --budget, --set, --per-layer-rounds and --holdout-windows of a cache method.
void add_budget_options(OptionTable& table, const std::string& method);
/// Returns true if --budget is given. Without --budget, the command does something else.
/// @param others  the command's own options, which cannot be combined with --budget
/// @throws Error kUsage if they are combined
bool has_budget(const Options& options, std::span<const std::string_view> others);
/// Reads the plan of a calibration from the options.
/// @param full  bytes of the full cache of a document of `tokens` tokens
BudgetPlan budget_plan(const Options& options, double full, std::size_t tokens);
/// Returns the next command for the config: the export, if llama.cpp supports its types for all layers, otherwise the
/// evaluation.
/// @param tokens  per document
std::string next_command(std::string_view method, const Options& options, ModelFormat format, const Json& settings,
                         std::size_t tokens);

}  // namespace kvs::inline calibrate
