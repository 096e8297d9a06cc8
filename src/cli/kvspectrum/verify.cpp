// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

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

OptionTable verify_options() {
  OptionTable table(
      "kvspectrum verify FILE [options]",
      "Checks every byte of a capture. Compares the digest of the metadata and the CRC-32C of every dataset with "
      "OUT.manifest.json. The exit status is 3 if one differs or if the manifest is missing.",
      {"kvspectrum verify book.h5", "kvspectrum verify book.h5.partial --allow-incomplete --json"});
  table.positional("FILE", "the capture")
      .flag("allow-incomplete", "check the committed documents of an unfinished capture")
      .flag("json", "print the report as JSON on stdout");
  return table;
}

void run_verify(const Options& options) {
  const std::filesystem::path path = options.text("FILE");
  Json report;
  const auto damaged =
      verify_capture(path, {.allow_incomplete = options.flag("allow-incomplete"), .skip_corrupt = false}, report);
  print_result(run_options(options), report, damaged == 0 ? sound_text(path, report) : "");
  if (damaged > 0)
    throw Error(ErrorCode::kInput, path.string(),
                "found " + std::to_string(damaged) + " damaged datasets, expected none");
}

}  // namespace

const Subcommand kVerifyCommand{"verify", verify_options, run_verify};

}  // namespace kvs::inline cli
