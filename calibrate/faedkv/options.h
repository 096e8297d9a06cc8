#pragma once

#include <cstddef>

#include "calibrate/faedkv/result.h"
#include "options/options.h"

namespace kvs {

/// The ablation's options and those of --budget.
void add_faedkv_options(OptionTable& table);
/// Whether --budget is given: the command then chooses settings instead of ablating.
/// @throws Error kUsage if an option of the ablation is given, too
bool asks_for_budget(const Options& options);
/// What the options ask of an ablation.
/// @param layers  of the model
/// @param tokens  of a document
/// @throws Error kUsage for values that do not fit the model or the documents
FaedkvPlan faedkv_plan(const Options& options, std::size_t layers, std::size_t documents, std::size_t tokens);

}  // namespace kvs
