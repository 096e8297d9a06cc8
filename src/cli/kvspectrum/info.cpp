#include <iostream>

#include "cli/kvspectrum/commands.h"
#include "run/model_info.h"
#include "run/outputs.h"

namespace kvs::inline cli {

void run_info(Arguments arguments) {
  OptionTable table("kvspectrum info MODEL [options]",
                    "What a model is, what its cache takes, and what can be done with it; reads no weights.",
                    {"kvspectrum info SmolLM2.gguf", "kvspectrum info llama/ --window 4096 --json"});
  table.positional("MODEL", "GGUF file (any part of a split one), or folder with config.json and safetensors")
      .value("window", "T", "tokens per document, for the memory of each command", "1024")
      .from(2, 1 << 24)
      .flag("json", "print the report as JSON on stdout");
  const auto options = table.parse(arguments, std::cout);
  if (!options) return;
  const auto window = options->count("window", 2, 1 << 24);
  const auto source = ModelSource::open(options->text("MODEL"));
  const ModelInfo info = model_info(*source, window);
  print_result(run_options(*options), to_json(info), to_text(info));
}

}  // namespace kvs::inline cli
