// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/json.h"
#include "run/program.h"

namespace kvs::inline cli {

/// Calibrates a method to --budget and writes its config to --out.
void run_budget(std::string_view method, const Options& options);

/// Returns true if the argument ACTION is `first`, false if it is `second`. @throws Error kUsage
bool is_first_action(const Options& options, std::string_view first, std::string_view second);
/// Returns the members of a result that say which configs, model, command and version made an output.
Json output_identity(const Options& options, const std::string& model_sha256);

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
