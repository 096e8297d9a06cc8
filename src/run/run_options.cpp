// SPDX-License-Identifier: Apache-2.0
#include "run/run_options.h"

#include <limits>

#include "run/interruption.h"

namespace kvs::inline run {
void add_seed_option(OptionTable& table, const std::string& help) { table.value("seed", "N", help, "0").from(0); }

void add_report_options(OptionTable& table) {
  table.group("Run").flag("quiet", "print only errors on stderr").flag("json", "print the result as JSON on stdout");
}

void add_run_options(OptionTable& table, bool resumable) {
  add_report_options(table);
  table.flag("force", "replace existing outputs")
      .flag("no-lock", "do not lock the output, for file systems without locks");
  if (resumable) table.flag("resume", "continue an interrupted run; needs the same options");
  table.check([](const Options& options) {
    if (options.flag("force")) refuse_options(options, {"resume"}, "--force");
  });
}

RunOptions run_options(const Options& options) {
  note_command(options);
  RunOptions run;
  run.force = options.flag("force");
  run.resume = options.flag("resume");
  run.quiet = options.flag("quiet") || !run.is_root();
  run.json = options.flag("json");
  run.lock = !options.flag("no-lock") && run.is_root();
  if (options.has("seed")) run.seed = options.integer("seed", 0, std::numeric_limits<std::int64_t>::max());
  return run;
}

}  // namespace kvs::inline run
