// SPDX-License-Identifier: Apache-2.0
#include "cli/kvspectrum/commands.h"
#include "run/model_info.h"
#include "run/outputs.h"

namespace kvs::inline cli {
namespace {

OptionTable info_options() {
  OptionTable table(
      "kvspectrum info MODEL [options]",
      "Prints a model's geometry, the bytes of its cache, and the methods that apply to it. Reads no weights.",
      {"kvspectrum info SmolLM2.gguf", "kvspectrum info llama/ --window 4096 --json"});
  table.positional("MODEL", "GGUF file (any part of a split one), or folder with config.json and safetensors")
      .value("window", "T", "tokens per document, on which the memory of each command depends", "1024")
      .from(2, kMaxTokens)
      .flag("json", "print the report as JSON on stdout");
  return table;
}

void run_info(const Options& options) {
  const auto source = ModelSource::open(options.text("MODEL"));
  const ModelInfo info = model_info(*source, options.count("window", 2, kMaxTokens));
  print_result(run_options(options), to_json(info), to_text(info));
}

}  // namespace

const Subcommand kInfoCommand{"info", info_options, run_info};

}  // namespace kvs::inline cli
