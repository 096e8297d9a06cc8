// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "draw/chart.h"
#include "draw/png.h"
#include "io/output_set.h"

namespace kvs::draw {

/// Returns the files of a figure: STEM.svg and STEM.png.
std::vector<std::filesystem::path> figure_files(const std::filesystem::path& stem);

/// The figures of a run. Each is an SVG and, if rsvg-convert can make it, a PNG. Otherwise an older PNG is removed.
class Figures {
 public:
  /// @param patience  time limit of a conversion; after one timeout no other conversion is tried
  explicit Figures(OutputSet& outputs, std::chrono::milliseconds patience = kPatience)
      : outputs_(outputs), patience_(patience) {}
  /// @throws Error kEnvironment; Interrupted
  void add(const std::filesystem::path& stem, const Chart& chart);
  /// Returns why the first missing PNG could not be made; empty if all were made.
  const std::string& note() const noexcept { return note_; }

 private:
  OutputSet& outputs_;
  std::chrono::milliseconds patience_;
  std::string note_;
  bool hung_ = false;
};

}  // namespace kvs::draw
