// SPDX-License-Identifier: Apache-2.0
#include "run/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "core/error.h"
#include "core/utf8.h"
#include "run/interruption.h"

namespace kvs::inline run {
namespace {

constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::chrono::seconds kLogInterval{20};

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 128> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

/// Returns true if standard error is a terminal that can clear a line.
bool draws_bars() noexcept {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

/// Returns the columns of the terminal; 80 if unknown.
std::size_t terminal_columns() noexcept {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

/// Returns an upper bound: two columns for each character that is not ASCII.
std::size_t width_of(std::string_view text) noexcept {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); at += std::max<std::size_t>(utf8_length(text.substr(at)), 1))
    width += static_cast<unsigned char>(text[at]) < 0x80 ? 1 : 2;
  return width;
}

/// Returns the start of `text` that fits in `columns`.
std::string_view fitting(std::string_view text, std::size_t columns) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t next = at + std::max<std::size_t>(utf8_length(text.substr(at)), 1);
    if (width_of(text.substr(0, next)) > columns) break;
    at = next;
  }
  return text.substr(0, at);
}

}  // namespace

std::string progress_bar(std::string_view label, double share, std::string_view left, std::size_t columns) {
  constexpr std::size_t kLongestBar = 30, kShortestBar = 5, kFrame = 3;  // "[", "] "
  const std::size_t room = std::max<std::size_t>(columns, 1) - 1;        // a full line would wrap
  std::string rest = formatted("%3.0f %%", 100 * share);
  if (width_of(label) + rest.size() + left.size() + 3 <= room) rest += "  " + std::string(left);
  const std::string_view shown = fitting(label, room - std::min(room, rest.size() + 1));
  const std::size_t used = width_of(shown) + 1 + rest.size();
  if (room < used + kFrame + kShortestBar) return std::string(shown) + ' ' + rest;
  const std::size_t bar = std::min(kLongestBar, room - used - kFrame);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(bar));
  return std::string(shown) + " [" + std::string(filled, '#') + std::string(bar - filled, ' ') + "] " + rest;
}

void print_note(const std::string& line, bool quiet) {
  if (!quiet) std::cerr << printable(line, std::string::npos) << std::endl;
}

Progress::Progress(const std::string& label, double total, bool quiet)
    : label_(printable(label)),
      total_(std::max(total, 1e-9)),
      quiet_(quiet),
      terminal_(draws_bars()),
      start_(Clock::now()),
      last_drawn_(start_) {}

Progress::~Progress() {
  if (!quiet_ && terminal_ && first_done_ >= 0) std::cerr << "\r\033[K" << std::flush;
}

void Progress::update(double done) {
  const double share = std::clamp(done / total_, 0.0, 1.0);
  note_progress(label_, share);
  if (quiet_) return;
  if (first_done_ < 0) first_done_ = done;
  const auto now = Clock::now();
  if (now - last_drawn_ < (terminal_ ? std::chrono::duration_cast<Clock::duration>(kRedraw)
                                     : std::chrono::duration_cast<Clock::duration>(kLogInterval)))
    return;
  last_drawn_ = now;
  draw(done, share);
}

void Progress::update(double done, double total) {
  total_ = std::max(total, 1e-9);
  update(done);
}

void Progress::draw(double done, double share) {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = (done - first_done_) / std::max(elapsed, 1e-9);
  const std::string left = rate > 0 ? human_seconds((total_ - done) / rate) + " left" : "";
  if (terminal_)
    std::cerr << '\r' << progress_bar(label_, share, left, terminal_columns()) << "\033[K" << std::flush;
  else
    std::cerr << label_ << ": " << formatted("%3.0f %%", 100 * share) << (left.empty() ? "" : ", ") << left
              << std::endl;
}

void PhaseProgress::update(const std::string& phase, std::size_t done, std::size_t total) {
  if (phase != phase_ || done == 0) progress_.emplace(phase, total, quiet_);
  phase_ = phase;
  progress_->update(static_cast<double>(done), static_cast<double>(total));
}

}  // namespace kvs::inline run
