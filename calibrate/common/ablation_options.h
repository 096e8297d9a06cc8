// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "eval/ablation_forward.h"
#include "options/options.h"

namespace kvs::inline calibrate {

/// Defaults of the options that differ from command to command.
struct AblationDefaults {
  std::string sinks, recent, transform, key_space;
};

/// --protocol --prefix --sinks --recent --transform --key-space.
void add_ablation_options(OptionTable& table, const AblationDefaults& defaults);
/// @param tokens  of a document
/// @throws Error kUsage as check_setup
AblationSetup ablation_setup(const Options& options, std::size_t tokens);
/// @throws Error kUsage if sinks and recent tokens do not fit in a prefix, or the scored tokens behind it
void check_setup(const AblationSetup& setup);

}  // namespace kvs::inline calibrate
