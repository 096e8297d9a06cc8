#pragma once

#include <string_view>

#include "cli/common/options.h"

namespace kvs {

/// --budget, --set, --by-layer and --held-out.
void add_budget_options(OptionTable& table);
/// Calibrates a method to --budget and writes its config to --out.
void run_budget(std::string_view method, const Options& options);

}  // namespace kvs
