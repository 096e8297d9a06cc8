// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/program.h"

namespace kvs::inline cli {

extern const Subcommand kInfoCommand;
extern const Subcommand kDoctorCommand;
extern const Subcommand kCaptureCommand;
extern const Subcommand kSpectrumCommand;
extern const Subcommand kPerturbCommand;
extern const Subcommand kRetainCommand;
extern const Subcommand kScoresCommand;
extern const Subcommand kReportCommand;
extern const Subcommand kMergeCommand;
extern const Subcommand kVerifyCommand;

}  // namespace kvs::inline cli
