#pragma once

#include <span>
#include <string>
#include <string_view>

#include "calibrate/budget/calibration.h"
#include "model/model.h"
#include "options/options.h"

namespace kvs {

/// --budget, --set, --per-layer-rounds and --holdout-windows, of a cache method.
void add_budget_options(OptionTable& table, const std::string& method);
/// Whether there is a --budget, of a command that does something else without one.
/// @param others  its own options, which cannot stand beside it
/// @throws Error kUsage where they do
bool has_budget(const Options& options, std::span<const std::string_view> others);
/// @param full  bytes of the full cache of a document of `tokens` tokens
BudgetPlan budget_plan(const Options& options, double full, std::size_t tokens);
/// What is run with the config: the export of types that llama.cpp has for all layers, or else the evaluation.
/// @param tokens  of a document
std::string next_command(std::string_view method, const Options& options, ModelFormat format, const Json& settings,
                         std::size_t tokens);

}  // namespace kvs
