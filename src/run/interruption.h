#pragma once

#include <string>
#include <string_view>

#include "run/options.h"

namespace kvs {

// What a run that is interrupted says of itself, noted while it runs. One run a process.

/// The command line, which takes --resume or does not.
void note_command(const Options& options);
/// How far the run is: `share` (0 to 1) of a phase.
void note_progress(std::string_view phase, double share);
/// From now on the run keeps what it has done for --resume.
void note_kept_state();

/// "at 34 % of moments; to go on: kvcalibrate transform … --resume": how far the run is, and the command that goes on,
/// quoted for a shell. Control characters are escaped.
std::string interruption();

}  // namespace kvs
