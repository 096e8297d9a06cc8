// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "options/options.h"

namespace kvs::inline run {

// State for the message of an interrupted run, recorded during the run. A process has one run.

/// Records the command line, and whether the command takes --resume.
void note_command(const Options& options);
/// Records the progress: `share` (0 to 1) of a phase.
void note_progress(std::string_view phase, double share);
/// Records that the run keeps its state for --resume from now on.
void note_kept_state();

/// Returns "at 34 % of moments; to go on: kvcalibrate transform … --resume": the progress, and the command that resumes
/// the run, quoted for a shell. Control characters are escaped.
std::string interruption();

}  // namespace kvs::inline run
