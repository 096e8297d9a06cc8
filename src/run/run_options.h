#pragma once

#include <cstdint>
#include <string>

#include "options/options.h"
#include "run/program_ranks.h"

namespace kvs {

void add_seed_option(OptionTable& table, const std::string& help);  // --seed, where something is drawn
void add_report_options(OptionTable& table);                        // --quiet --json, where nothing is written
void add_run_options(OptionTable& table, bool resumable);           // these, --force --no-lock (--resume)

/// The options that say how a run behaves.
struct RunOptions {
  bool force = false, resume = false, quiet = false, json = false, lock = true;
  std::int64_t seed = 0;
  Ranks* ranks = &program_ranks();

  /// Whether this process owns the outputs, what is kept for --resume, and what is said: it alone, or rank 0.
  bool is_root() const noexcept { return ranks->is_root(); }
  /// Whether files that go with the main output may be replaced: a run that was killed may have left them.
  bool replace() const noexcept { return force || resume; }
};
RunOptions run_options(const Options& options);

}  // namespace kvs
