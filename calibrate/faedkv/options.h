// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "calibrate/faedkv/result.h"
#include "options/options.h"

namespace kvs::inline calibrate {

/// Adds the options of the ablation and of --budget.
void add_faedkv_options(OptionTable& table);
/// Returns true if --budget is given. The command then chooses settings instead of ablating.
/// @throws Error kUsage if an option of the ablation is given, too
bool asks_for_budget(const Options& options);
/// Returns the plan of the ablation that the options request.
/// @param layers  number of layers of the model
/// @param tokens  tokens per document
/// @throws Error kUsage for values that do not fit the model or the documents
FaedkvPlan faedkv_plan(const Options& options, std::vector<std::size_t> layers, std::size_t documents,
                       std::size_t tokens);

}  // namespace kvs::inline calibrate
