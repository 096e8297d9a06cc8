#include "draw/figure.h"

#include "draw/png.h"
#include "draw/svg.h"

namespace kvs::draw {

std::vector<std::filesystem::path> figure_files(const std::filesystem::path& stem) {
  return {stem.string() + ".svg", stem.string() + ".png"};
}

std::string stage_figure(OutputSet& outputs, const std::filesystem::path& stem, const Chart& chart) {
  const auto files = figure_files(stem);
  const std::string svg = svg_file(chart);
  const Png png = png_of(svg);
  outputs.add(files[0], svg);
  if (png.problem.empty())
    outputs.add(files[1], png.bytes);
  else
    outputs.remove(files[1]);
  return png.problem.empty() ? "" : "note: " + files[1].string() + " is not written: " + png.problem;
}

}  // namespace kvs::draw
