// SPDX-License-Identifier: Apache-2.0
#include "run/interruption.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace kvs::inline run {
namespace {

struct RunningCommand {
  std::string command, phase;  // the command that resumes the run
  double share = 0;
  bool resumable = false, kept = false;
};

RunningCommand& running() {
  static RunningCommand command;
  return command;
}

}  // namespace

void note_command(const Options& options) {
  running().command = options.resumed_command();
  running().resumable = options.takes("resume");
  running().kept = options.has("resume");  // true if the previous run kept its state
}

void note_progress(std::string_view phase, double share) {
  if (running().phase != phase) running().phase = phase;
  running().share = share;
}

void note_kept_state() { running().kept = true; }

std::string interruption() {
  const RunningCommand& run = running();
  std::string text;
  if (!run.phase.empty())
    text = " at " + std::to_string(std::lround(100 * std::clamp(run.share, 0.0, 1.0))) + " % of " + run.phase;
  if (!run.resumable || run.command.empty()) return text;
  text += run.kept ? "; to go on: " + run.command : "; nothing is kept: the same command starts anew";
  return printable(text, std::string::npos);
}

}  // namespace kvs::inline run
