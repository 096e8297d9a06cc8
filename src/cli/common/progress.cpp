#include "cli/common/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "core/error.h"

namespace kvs {
namespace {

constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::chrono::seconds kLogInterval{20};

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 128> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

}  // namespace

std::string human_bytes(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return formatted(bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 10) return formatted("%.1f s", seconds);
  if (seconds < 60) return formatted("%.0f s", seconds);
  if (seconds < 3600) return formatted("%d min %d s", static_cast<int>(seconds) / 60, static_cast<int>(seconds) % 60);
  return formatted("%d h %d min", static_cast<int>(seconds) / 3600, static_cast<int>(seconds) / 60 % 60);
}

void remark(const std::string& line, bool quiet) {
  if (!quiet) std::cerr << printable(line, std::string::npos) << std::endl;
}

Progress::Progress(std::string label, double total, bool quiet)
    : label_(std::move(label)),
      total_(std::max(total, 1e-9)),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_drawn_(start_) {}

Progress::~Progress() {
  if (!quiet_ && terminal_ && first_done_ >= 0) std::cerr << "\r\033[K" << std::flush;
}

void Progress::update(double done) {
  if (quiet_) return;
  if (first_done_ < 0) first_done_ = done;
  last_done_ = done;
  const auto now = Clock::now();
  if (now - last_drawn_ < (terminal_ ? std::chrono::duration_cast<Clock::duration>(kRedraw)
                                     : std::chrono::duration_cast<Clock::duration>(kLogInterval)))
    return;
  last_drawn_ = now;
  draw(done);
}

void Progress::update(double done, double total) {
  total_ = std::max(total, 1e-9);
  update(done);
}

void Progress::draw(double done) {
  const double share = std::clamp(done / total_, 0.0, 1.0);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = (done - first_done_) / std::max(elapsed, 1e-9);
  const std::string left = rate > 0 ? human_seconds((total_ - done) / rate) + " left" : "";
  const std::string percent = formatted("%3.0f %%", 100 * share);
  if (!terminal_) {
    std::cerr << label_ << ": " << percent << (left.empty() ? "" : ", ") << left << std::endl;
    return;
  }
  constexpr int kWidth = 30;
  const auto filled = static_cast<std::size_t>(share * kWidth);
  std::cerr << '\r' << label_ << " [" << std::string(filled, '#') << std::string(kWidth - filled, ' ') << "] "
            << percent << "  " << left << "\033[K" << std::flush;
}

}  // namespace kvs
