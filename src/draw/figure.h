#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "draw/chart.h"
#include "draw/png.h"
#include "io/output_set.h"

namespace kvs::draw {

/// The files of a figure: `stem` with .svg and with .png behind it.
std::vector<std::filesystem::path> figure_files(const std::filesystem::path& stem);

/// The figures of a run. Each is an SVG and, where rsvg-convert makes one, a PNG; an older PNG is removed else.
class Figures {
 public:
  /// @param patience  time limit of a conversion; after one that took longer no other is tried
  explicit Figures(OutputSet& outputs, std::chrono::milliseconds patience = kPatience)
      : outputs_(outputs), patience_(patience) {}
  /// @throws Error kEnvironment; Interrupted
  void add(const std::filesystem::path& stem, const Chart& chart);
  /// Says why the first PNG that is missing could not be made; empty where all are there.
  const std::string& note() const noexcept { return note_; }

 private:
  OutputSet& outputs_;
  std::chrono::milliseconds patience_;
  std::string note_;
  bool hung_ = false;
};

}  // namespace kvs::draw
