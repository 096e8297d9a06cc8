// SPDX-License-Identifier: Apache-2.0
#include "export/overlay/overlay.h"

#include <filesystem>

#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "io/file.h"
#include "run/model_session.h"
#include "run/outputs.h"

namespace kvs::inline cli {
namespace {

bool applies(const Options& options) { return is_first_action(options, "apply", "undo"); }

OptionTable overlay_options() {
  OptionTable table(
      "kvcalibrate overlay (apply | undo) --model DIR [--overlay DIR] [options]",
      "Puts the files of `kvcalibrate export --overlay` (--to vllm-fp8 or modelopt-map) into a model's folder, or "
      "removes them. The files that apply replaces stay in the folder, and undo restores them. A checkpoint other than "
      "the overlay's is refused.",
      {"kvcalibrate overlay apply --overlay scales/ --model llama/", "kvcalibrate overlay undo --model llama/"});
  table.positional("ACTION", "apply or undo")
      .value("model", "DIR", "the model's folder")
      .required()
      .value("overlay", "DIR", "the overlay's folder, for apply")
      .flag("json", "print the result as JSON on stdout")
      .flag("no-lock", "do not lock the model's folder, for file systems without locks")
      .check([](const Options& options) {
        if (applies(options) && !options.has("overlay")) miss_option("overlay", "DIR");
        if (!applies(options)) refuse_options(options, {"overlay"}, "undo");
      });
  return table;
}

void run_overlay(const Options& options) {
  const std::filesystem::path folder = options.text("model");
  if (!std::filesystem::is_directory(folder))
    throw Error(ErrorCode::kInput, folder.string(), "found no folder, expected the folder of a model");
  const OutputLock lock(folder / kOverlayRecord, !options.flag("no-lock"));
  const bool apply = applies(options);
  const OverlayManifest manifest =
      apply ? apply_overlay(options.text("overlay"), *open_model(options)) : undo_overlay(folder);
  Json files{kOverlayScales};
  for (const auto& [name, file] : manifest.replaced) files.push_back(name);
  print_result(run_options(options),
               {{"action", options.text("ACTION")},
                {"model", folder.string()},
                {"layers", manifest.layers},
                {"files", files},
                {"manifest", manifest.to_json()}},
               folder.string() + ": " + (apply ? "applied" : "removed") + " the scales of " +
                   std::to_string(manifest.layers.size()) + " layers\n");
}

}  // namespace

const Subcommand kOverlayCommand{"overlay", overlay_options, run_overlay};

}  // namespace kvs::inline cli
