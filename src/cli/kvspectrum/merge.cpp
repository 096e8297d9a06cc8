#include <filesystem>
#include <iostream>
#include <optional>
#include <vector>

#include "cli/common/estimate.h"
#include "cli/common/interruption.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/kvspectrum/commands.h"
#include "states/capture_run.h"
#include "states/capture_split.h"

namespace kvs {
namespace {

OptionTable merge_options() {
  OptionTable table("kvspectrum merge FILE … --out FILE [options]",
                    "Joins the parts that kvspectrum capture --split has written into one capture, the bytes of a run "
                    "without --split. The parts stay.",
                    {"kvspectrum merge book-*.h5 --out book.h5"});
  table.positionals("FILE", "every part, in any order")
      .value("out", "FILE", "the capture to write")
      .required()
      .flag("force", "replace an output that exists")
      .flag("resume", "go on with an interrupted merge")
      .flag("quiet", "nothing on stderr but errors")
      .flag("json", "print the result as JSON on stdout")
      .flag("no-lock", "do not lock the output (file systems without locks)");
  return table;
}

}  // namespace

void run_merge(Arguments arguments) {
  const auto options = merge_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const std::filesystem::path out = options->text("out");
  const std::vector<std::filesystem::path> files(options->list("FILE").begin(), options->list("FILE").end());
  check_inputs_spared(std::span(&out, 1), *options);
  std::optional<Progress> progress;
  const CaptureHeader header = merge_captures(files, out, {.force = run.force, .resume = run.resume, .lock = run.lock},
                                              [&](std::size_t done, std::size_t of) {
                                                if (!progress)
                                                  progress.emplace("merge", static_cast<double>(of), run.quiet);
                                                note_kept_state();
                                                progress->update(static_cast<double>(done));
                                              });
  progress.reset();
  const auto bytes = capture_bytes(header);
  print_result(run, {{"out", out.string()}, {"parts", files.size()}, {"documents", header.documents}, {"bytes", bytes}},
               out.string() + ": " + std::to_string(header.documents) + " documents of " +
                   std::to_string(header.tokens) + " tokens from " + std::to_string(files.size()) + " parts, " +
                   human_bytes(static_cast<double>(bytes)) + "\n");
}

}  // namespace kvs
