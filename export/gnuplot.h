#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

/// Runs `script` with gnuplot, in a new private directory that is its working directory and is removed afterwards.
/// User start-up files are not read.
/// @param outputs  plain names of files that the script must leave there
/// @return their contents. @throws Error kEnvironment if gnuplot is missing, fails or leaves out a file; Interrupted.
std::vector<std::string> run_gnuplot(std::string_view script, std::span<const std::string> outputs);

}  // namespace kvs
