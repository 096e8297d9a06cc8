// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/human.h"

namespace kvs::inline run {

/// Progress on stderr: on a terminal a bar with the remaining time, else a line from time to time; nothing if quiet.
class Progress {
 public:
  /// @param label  the phase: the command's name, or "COMMAND: PHASE" if it has several
  Progress(const std::string& label, double total, bool quiet);
  template <std::integral Count>
  Progress(const std::string& label, Count total, bool quiet) : Progress(label, static_cast<double>(total), quiet) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Reports `done` of `total` units of work.
  void update(double done);
  /// Like update(done), with a new total.
  void update(double done, double total);
  /// Returns a function that calls update() with whole units.
  std::function<void(std::size_t)> counter() {
    return [this](std::size_t done) { update(static_cast<double>(done)); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  void draw(double done, double share);
  std::string label_;
  double total_, first_done_ = -1;
  bool quiet_, terminal_;
  Clock::time_point start_, last_drawn_;
};

/// Progress of work in phases, each with its own bar, or of a phase whose total is known late.
class PhaseProgress {
 public:
  explicit PhaseProgress(bool quiet) : quiet_(quiet) {}
  /// Reports `done` of `total` units of a phase. A new phase, or one that restarts, gets a new bar.
  void update(const std::string& phase, std::size_t done, std::size_t total);
  /// Returns a function that calls update().
  std::function<void(std::string_view, std::size_t, std::size_t)> counter() {
    return [this](std::string_view phase, std::size_t done, std::size_t total) {
      update(std::string(phase), done, total);
    };
  }
  /// Returns a function that calls update() for one phase, with the units that are done.
  std::function<void(std::size_t)> counter(std::string phase, std::size_t total) {
    return [this, phase = std::move(phase), total](std::size_t done) { update(phase, done, total); };
  }

 private:
  bool quiet_;
  std::string phase_;
  std::optional<Progress> progress_;
};

/// Returns "LABEL [####    ]  50 %  1.5 s left" in fewer than `columns` columns: first the bar is shortened, then the
/// time is dropped, then the end of the label.
std::string progress_bar(std::string_view label, double share, std::string_view left, std::size_t columns);

/// Prints a note of one line on stderr, unless quiet. The line may hold names from files: control characters are
/// escaped (printable() in core/error.h).
void print_note(const std::string& line, bool quiet);

}  // namespace kvs::inline run
