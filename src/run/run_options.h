// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "options/options.h"
#include "run/program_ranks.h"

namespace kvs::inline run {

void add_seed_option(OptionTable& table, const std::string& help);  // --seed, for commands that draw random numbers
void add_report_options(OptionTable& table);                        // --quiet --json, for commands that write no file
void add_run_options(OptionTable& table, bool resumable);           // these, --force --no-lock (--resume)

/// Options of the run itself.
struct RunOptions {
  bool force = false, resume = false, quiet = false, json = false, lock = true;
  std::int64_t seed = 0;
  Ranks* ranks = &program_ranks();

  /// Returns true if this process owns outputs, state for --resume and messages: the only process, or rank 0.
  bool is_root() const noexcept { return ranks->is_root(); }
  /// Returns true if files that belong to the main output may be replaced: a killed run may have left them.
  bool replace() const noexcept { return force || resume; }
};
RunOptions run_options(const Options& options);

}  // namespace kvs::inline run
