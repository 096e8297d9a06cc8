#include <iostream>

#include "cli/kvspectrum/commands.h"
#include "cli/kvspectrum/model_report.h"
#include "run/outputs.h"

namespace kvs {

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
  constexpr std::int64_t kMaxWindow = 1 << 24;
  const auto window = static_cast<std::size_t>(options->integer("window", 2, kMaxWindow));
  const auto source = ModelSource::open(options->text("MODEL"));
  const Json report = model_report(*source, window);
  print_result(run_options(*options), report, report_text(report));
}

}  // namespace kvs
