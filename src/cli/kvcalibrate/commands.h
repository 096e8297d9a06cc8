// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "run/program.h"

namespace kvs::inline cli {

/// Calibrates a method to --budget and writes its config to --out.
void run_budget(std::string_view method, const Options& options);

extern const Subcommand kFaedkvCommand;
extern const Subcommand kElitekvCommand;
extern const Subcommand kFreqkvCommand;
extern const Subcommand kLagkvCommand;
extern const Subcommand kTransformCommand;
extern const Subcommand kKvtcCommand;
extern const Subcommand kTriattentionCommand;
extern const Subcommand kOscarCommand;
extern const Subcommand kStoreCommand;
extern const Subcommand kEvalCommand;
extern const Subcommand kCompareCommand;
extern const Subcommand kRecommendCommand;
extern const Subcommand kGenerateCommand;
extern const Subcommand kLatencyCommand;
extern const Subcommand kCostCommand;
extern const Subcommand kExportCommand;
extern const Subcommand kOverlayCommand;
extern const Subcommand kSlotsCommand;
extern const Subcommand kValidateCommand;

}  // namespace kvs::inline cli
