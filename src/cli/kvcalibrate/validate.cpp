// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>

#include "calibrate/config/config.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "run/outputs.h"

namespace kvs::inline cli {
namespace {

OptionTable validate_options() {
  OptionTable table(
      "kvcalibrate validate (FILE | --schema) [options]",
      "Checks a config against the JSON Schema, its lists against each other, and its files against their digests.",
      {"kvcalibrate validate smollm2-elitekv.json", "kvcalibrate validate --schema"});
  table.positional("FILE", "the config", false)
      .flag("schema", "print the JSON Schema instead; takes no FILE")
      .flag("json", "print the result as JSON on stdout")
      .check([](const Options& options) {
        if (options.has("FILE")) return refuse_options(options, {"schema"}, "FILE");
        if (!options.flag("schema")) throw Error(ErrorCode::kUsage, "missing FILE or --schema", "see --help");
      });
  return table;
}

void run_validate(const Options& options) {
  if (options.flag("schema")) {
    std::cout << config_schema();
    return;
  }
  const std::filesystem::path path = options.text("FILE");
  const Json config = read_config(path);
  const auto method = config.at("method").get<std::string>();
  print_result(run_options(options), {{"file", path.string()}, {"valid", true}, {"method", method}},
               path.string() + ": valid " + method + " config\n");
}

}  // namespace

const Subcommand kValidateCommand{"validate", validate_options, run_validate};

}  // namespace kvs::inline cli
