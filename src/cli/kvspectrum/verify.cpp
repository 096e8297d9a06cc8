#include <filesystem>
#include <iostream>

#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "io/hdf5/capture_file.h"
#include "run/outputs.h"

namespace kvs::inline cli {
namespace {

std::string sound_text(const std::filesystem::path& path, const Json& report) {
  return path.string() + ": sound: the metadata and " + std::to_string(report.at("datasets").get<std::uint64_t>()) +
         " datasets have the checksums of the " + report.at("checked_against").get<std::string>() + "\n";
}

}  // namespace

void run_verify(Arguments arguments) {
  OptionTable table(
      "kvspectrum verify FILE [options]",
      "Checks a capture's metadata digest and the CRC-32C of every dataset. Exit status 3 if any differs, or if "
      "OUT.manifest.json, which holds them, is missing.",
      {"kvspectrum verify book.h5", "kvspectrum verify book.h5.partial --allow-incomplete --json"});
  table.positional("FILE", "the capture")
      .flag("allow-incomplete", "check the committed documents of an unfinished capture")
      .flag("json", "print the report as JSON on stdout");
  const auto options = table.parse(arguments, std::cout);
  if (!options) return;
  const std::filesystem::path path = options->text("FILE");
  Json report;
  const auto damaged =
      verify_capture(path, {.allow_incomplete = options->flag("allow-incomplete"), .skip_corrupt = false}, report);
  print_result(run_options(*options), report, damaged == 0 ? sound_text(path, report) : "");
  if (damaged > 0)
    throw Error(ErrorCode::kInput, path.string(),
                "found " + std::to_string(damaged) + " damaged datasets, expected none");
}

}  // namespace kvs::inline cli
