#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

/// For commands that draw when hours are over. @throws Error kEnvironment if gnuplot is missing.
void check_gnuplot();

/// Runs `script` with gnuplot. Everything passes through files in memory, so that nothing is left behind even when this
/// process is killed. User start-up files are not read.
/// @param outputs  names of variables, set before the script, that each hold the path of a file it must write
/// @return the files' contents. @throws Error kEnvironment if gnuplot is missing, fails or leaves out a file;
/// Interrupted.
std::vector<std::string> run_gnuplot(std::string_view script, std::span<const std::string> outputs);

/// Whether an SVG or PNG has its end.
bool is_whole_figure(std::string_view bytes) noexcept;

}  // namespace kvs
