#pragma once

#include <string>
#include <string_view>

#include "options/options.h"

namespace kvs {

// Facts for the message of an interrupted run, noted while the run goes on. There is one run a process.

/// Notes the command line, and whether the command takes --resume.
void note_command(const Options& options);
/// Notes how far the run is: `share` (0 to 1) of a phase.
void note_progress(std::string_view phase, double share);
/// Notes that the run keeps its state for --resume from now on.
void note_kept_state();

/// "at 34 % of moments; to go on: kvcalibrate transform … --resume": how far the run is, and the command that goes on,
/// quoted for a shell. Control characters are escaped.
std::string interruption();

}  // namespace kvs
