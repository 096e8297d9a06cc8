#include <filesystem>
#include <iostream>

#include "calibrate/config/config.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "run/outputs.h"

namespace kvs::inline cli {

void run_validate(Arguments arguments) {
  OptionTable table("kvcalibrate validate FILE [options]",
                    "Checks a config: the shipped JSON Schema, its lists against each other, the digests of its files.",
                    {"kvcalibrate validate smollm2-elitekv.json", "kvcalibrate validate --schema"});
  table.positional("FILE", "the config")
      .flag("schema", "print the JSON Schema instead; takes no FILE")
      .flag("json", "print the result as JSON on stdout");
  if (arguments.size() == 1 && arguments[0] == "--schema") {
    std::cout << config_schema();
    return;
  }
  const auto options = table.parse(arguments, std::cout);
  if (!options) return;
  if (options->flag("schema"))
    throw Error(ErrorCode::kUsage, "--schema", "found together with FILE, expected one of them");
  const std::filesystem::path path = options->text("FILE");
  const Json config = read_config(path);
  const auto method = config.at("method").get<std::string>();
  print_result(run_options(*options), {{"file", path.string()}, {"valid", true}, {"method", method}},
               path.string() + ": valid " + method + " config\n");
}

}  // namespace kvs::inline cli
