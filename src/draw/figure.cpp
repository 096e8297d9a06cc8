// SPDX-License-Identifier: Apache-2.0
#include "draw/figure.h"

#include "draw/svg.h"

namespace kvs::draw {

std::vector<std::filesystem::path> figure_files(const std::filesystem::path& stem) {
  return {stem.string() + ".svg", stem.string() + ".png"};
}

void Figures::add(const std::filesystem::path& stem, const Chart& chart) {
  const auto files = figure_files(stem);
  const std::string svg = svg_file(chart);
  const Png png = hung_ ? Png{} : png_of(svg, patience_);
  hung_ = hung_ || png.hung;
  outputs_.add(files[0], svg);
  if (!png.bytes.empty())
    outputs_.add(files[1], png.bytes);
  else
    outputs_.remove(files[1]);
  if (note_.empty() && !png.problem.empty()) note_ = "note: " + files[1].string() + " is not written: " + png.problem;
}

}  // namespace kvs::draw
