// SPDX-License-Identifier: Apache-2.0
#include "export/report/report.h"

#include <algorithm>
#include <filesystem>

#include "cli/kvspectrum/commands.h"
#include "export/report/inputs.h"
#include "export/report/markup.h"
#include "io/file.h"
#include "io/input_files.h"
#include "run/outputs.h"
#include "run/progress.h"
#include "version.h"

namespace kvs::inline cli {
namespace {

OptionTable report_options() {
  OptionTable table(
      "kvspectrum report (DIR | FILE) … --out FILE [options]",
      "Writes one page about a model from the results of both programs. It shows spectra, configs, evaluations, "
      "answers to tasks, comparisons and costs. The page opens from disk and needs no network.",
      {"kvspectrum report out/demo --out report.html",
       "kvspectrum report spectrum/spectrum.json elitekv.json *.eval.json --out report.html --force"});
  table.positionals("PATH", "results (JSON), or folders of results; other files in a folder are skipped")
      .value("out", "FILE", "the page to write")
      .required();
  add_run_options(table, false);
  return table;
}

/// Lists the skipped files of folders in one line.
void note_skipped(const std::vector<std::string>& skipped, bool quiet) {
  constexpr std::size_t kMaxNamed = 5;
  if (skipped.empty()) return;
  std::string names;
  for (std::size_t n = 0; n < std::min(kMaxNamed, skipped.size()); ++n) names += (n > 0 ? ", " : "") + skipped[n];
  const std::size_t more = skipped.size() - std::min(kMaxNamed, skipped.size());
  print_note(
      "note: skipped files that are not results: " + names + (more > 0 ? " and " + std::to_string(more) + " more" : ""),
      quiet);
}

void run_report(const Options& options) {
  const RunOptions run = run_options(options);
  const std::filesystem::path out = options.text("out");
  check_outputs(out, {}, options, run);
  const OutputLock lock(out, run.lock);
  const std::vector<std::filesystem::path> paths(options.list("PATH").begin(), options.list("PATH").end());
  const ReportInputs inputs = read_report_inputs(paths);
  InputFiles read;  // only files that are read: a folder may contain a page
  for (const Output& output : inputs.outputs) read.add(output.path);
  read.check_spared(out);
  note_skipped(inputs.skipped, run.quiet);
  const std::string page = render_report(inputs, {options.command(), kToolVersion});
  write_file_atomically(out, page, run.force);
  print_result(run, {{"report", out.string()}, {"results", inputs.outputs.size()}, {"bytes", page.size()}},
               out.string() + ": a page of " + human_bytes(static_cast<double>(page.size())) + " from " +
                   counted(inputs.outputs.size(), "result") + "\n");
}

}  // namespace

const Subcommand kReportCommand{"report", report_options, run_report};

}  // namespace kvs::inline cli
