#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "draw/chart.h"
#include "io/output_set.h"

namespace kvs::draw {

/// The files of a figure: `stem` with .svg and with .png behind it.
std::vector<std::filesystem::path> figure_files(const std::filesystem::path& stem);

/// Stages the SVG of a figure and, where rsvg-convert makes one, its PNG; an older PNG goes else.
/// @return a note that says why there is no PNG, or nothing. @throws Error kEnvironment; Interrupted
std::string stage_figure(OutputSet& outputs, const std::filesystem::path& stem, const Chart& chart);

}  // namespace kvs::draw
