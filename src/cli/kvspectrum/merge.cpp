// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <vector>

#include "cli/kvspectrum/commands.h"
#include "run/interruption.h"
#include "run/outputs.h"
#include "run/progress.h"
#include "states/capture_run.h"
#include "states/capture_split.h"

namespace kvs::inline cli {
namespace {

OptionTable merge_options() {
  OptionTable table("kvspectrum merge FILE … --out FILE [options]",
                    "Joins the parts of kvspectrum capture --parts into one capture. The capture has the bytes of a "
                    "run without --parts. The parts stay on disk.",
                    {"kvspectrum merge book-*.h5 --out book.h5"});
  table.positionals("FILE", "all parts, in any order").value("out", "FILE", "the capture to write").required();
  add_run_options(table, true);
  return table;
}

CaptureHeader merge(const std::vector<std::filesystem::path>& files, const std::filesystem::path& out,
                    const RunOptions& run) {
  PhaseProgress progress(run.quiet);
  return merge_captures(files, out, {.force = run.force, .resume = run.resume, .lock = run.lock},
                        [&](std::size_t done, std::size_t of) {
                          note_kept_state();
                          progress.update("merge", done, of);
                        });
}

void run_merge(const Options& options) {
  const RunOptions run = run_options(options);
  const std::filesystem::path out = options.text("out");
  const std::vector<std::filesystem::path> files(options.list("FILE").begin(), options.list("FILE").end());
  check_inputs_spared(std::span(&out, 1), options);
  const CaptureHeader header = merge(files, out, run);
  const auto bytes = capture_bytes(header);
  print_result(run, {{"out", out.string()}, {"parts", files.size()}, {"documents", header.documents}, {"bytes", bytes}},
               out.string() + ": " + std::to_string(header.documents) + " documents of " +
                   std::to_string(header.tokens) + " tokens from " + std::to_string(files.size()) + " parts, " +
                   human_bytes(static_cast<double>(bytes)) + "\n");
}

}  // namespace

const Subcommand kMergeCommand{"merge", merge_options, run_merge};

}  // namespace kvs::inline cli
