// SPDX-License-Identifier: Apache-2.0
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "run/machine_report.h"
#include "run/outputs.h"

namespace kvs::inline cli {
namespace {

OptionTable doctor_options() {
  OptionTable table("kvspectrum doctor [options]",
                    "Prints what the programs find on this machine: processor, memory, GPU, libraries, helper programs "
                    "and fetched models. Names the package of a part that is missing.",
                    {"kvspectrum doctor", "kvspectrum doctor --json"});
  table.flag("json", "print the report as JSON on stdout");
  return table;
}

void run_doctor(const Options& options) {
  const MachineReport report = machine_report();
  print_result(run_options(options), to_json(report), to_text(report));
  if (!report.is_complete())
    throw Error(ErrorCode::kEnvironment, "doctor", "found that a required part is missing, expected all of them");
}

}  // namespace

const Subcommand kDoctorCommand{"doctor", doctor_options, run_doctor};

}  // namespace kvs::inline cli
