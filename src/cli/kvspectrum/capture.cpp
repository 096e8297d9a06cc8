// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "calibrate/common/layer_options.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "core/nearest.h"
#include "io/file.h"
#include "run/capture_job.h"
#include "run/progress.h"
#include "states/capture_run.h"

namespace kvs::inline cli {
namespace {

StateSet states_of(const Options& options) {
  StateSet states;
  for (const std::string& name : options.words("states")) {
    const auto kind = state_kind_from_name(name);
    if (!kind)
      throw Error(ErrorCode::kUsage, "--states",
                  "found '" + name + "', expected any of q_pre,k_pre,k_post,v" +
                      did_you_mean(name, std::vector<std::string>{"q_pre", "k_pre", "k_post", "v"}));
    states.insert(*kind);
  }
  return states;
}

OptionTable capture_options() {
  OptionTable table("kvspectrum capture --model PATH --text PATH --out FILE [options]",
                    "Runs texts through a model and stores queries, keys and values of every layer in one HDF5 file.",
                    {"kvspectrum capture --model SmolLM2.gguf --text book.txt --documents 8 --out book.h5",
                     "kvspectrum capture --model llama/ --text book.txt --states q_pre,k_pre --layers 0,14-16 "
                     "--state-dtype bf16 --out book.h5"});
  table.value("out", "FILE", "the capture to write")
      .required()
      .value("states", "LIST", "states to store: any of q_pre,k_pre,k_post,v", "k_pre,v")
      .value("layers", "LAYERS", "layers to store, such as 0,14-16", "all")
      .value("state-dtype", "f32|f16|bf16", "type of the stored states", "f32")
      .formerly("store")
      .value("parts", "N", "write N files instead of one: OUT-00001-of-0000N.h5 and so on; kvspectrum merge joins them")
      .formerly("split")
      .from(1, kMaxSplitParts)
      .check([](const Options& options) { (void)states_of(options); });
  add_model_run_options(table, true);
  return table;
}

/// Returns --parts; 0 parts mean a single file.
CaptureSplit split_of(const Options& options) {
  return {.parts = options.has("parts") ? options.count("parts", 1, kMaxSplitParts) : 0};
}

CaptureJob make_job(const Run& run, const CaptureSplit& split) {
  const Options& options = run.options();
  const std::size_t documents = run.documents().size();
  if (split.parts > documents)
    throw Error(
        ErrorCode::kUsage, "--parts",
        "found " + std::to_string(split.parts) + ", expected at most the " + std::to_string(documents) + " documents");
  CaptureJob job{
      run.documents(),
      capture_header(run.config(), run.model().sha256(), chosen_layers(options, run.config()), states_of(options),
                     *dtype_from_name(options.text("state-dtype")), run.tokens(), documents),
      run.identity(),
      {.force = run.settings().force,
       .resume = run.settings().resume,
       .lock = split.parts > 0 && !options.flag("no-lock")}};
  if (const std::string& tokenizer = run.corpus().tokenizer_sha256; !tokenizer.empty())
    job.identity["tokenizer_sha256"] = tokenizer;
  job.identity["options"].erase("parts");  // the identity of a part contains its number
  return job;
}

void print_capture(const Run& run, const CaptureHeader& header, std::span<const std::filesystem::path> files,
                   std::size_t resumed_at) {
  const std::uint64_t bytes = capture_bytes(header);
  Json result{{"out", run.options().text("out")},
              {"documents", header.documents},
              {"tokens", header.tokens},
              {"layers", header.layers},
              {"bytes", bytes},
              {"resumed_at", resumed_at},
              {"tokens_dropped", run.corpus().tokens_dropped}};
  if (run.options().has("parts")) result["files"] = std::vector<std::string>(files.begin(), files.end());
  run.print(result, files.front().string() + (files.size() > 1 ? " … " + files.back().string() : "") + ": " +
                        std::to_string(header.documents) + " documents of " + std::to_string(header.tokens) +
                        " tokens, " + human_bytes(static_cast<double>(bytes)) + "\n");
}

void run_capture(const Options& options) {
  const std::filesystem::path out = options.text("out");
  CaptureSplit split = split_of(options);
  Run run(options);
  const auto files = checked_files(split, out, run);
  const OutputLock lock(out, run.settings().lock && split.parts == 0);
  run.open_model();
  (void)chosen_layers(options, run.config());  // checked before the texts are read
  run.read_texts();
  split.documents = run.documents().size();
  const CaptureJob job = make_job(run, split);
  // Loading checks the device and all weights. A failed check leaves nothing on disk.
  run.identity() = job.identity;
  run.load();
  const std::size_t found = split.parts > 0 ? capture_parts(run, job, split, out) : capture_whole(run, job, out);
  if (run.is_root()) print_capture(run, job.header, files, found);
}

}  // namespace

const Subcommand kCaptureCommand{"capture", capture_options, run_capture, true};

}  // namespace kvs::inline cli
