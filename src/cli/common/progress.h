#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace kvs {

/// Progress on stderr: a bar with the time left on a terminal, a line now and then elsewhere, nothing when quiet.
class Progress {
 public:
  /// @param label  the phase: the command's name, or "COMMAND: PHASE" where it has several
  Progress(const std::string& label, double total, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total` units of work.
  void update(double done);
  /// The same where the total has changed.
  void update(double done, double total);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(double done, double share);
  std::string label_;
  double total_, first_done_ = -1, last_done_ = 0;
  bool quiet_, terminal_;
  Clock::time_point start_, last_drawn_;
};

/// "LABEL [####    ]  50 %  1.5 s left" in fewer than `columns` columns: the bar gives way first, then the time, then
/// the label's end.
std::string progress_bar(std::string_view label, double share, std::string_view left, std::size_t columns);

/// "1.5 GiB", "12 MiB"; "2 min 5 s".
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);

/// A remark of one line on stderr, unless quiet; names from files may be in it (core/error.h, printable).
void remark(const std::string& line, bool quiet);

}  // namespace kvs
