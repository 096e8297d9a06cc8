// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "draw/chart.h"
#include "io/json.h"
#include "io/output_set.h"
#include "run/run_options.h"

namespace kvs::inline run {

// Rank 0 owns the outputs. On other ranks, functions that take a RunOptions check and print nothing.

/// Checks that writing `outputs`, and the files kept next to the first `keeping` of them (lock, journal, checkpoints,
/// manifest, unfinished file), overwrites no input of the command and no other output.
/// @throws Error kUsage, also if an output is in the folder of a model or of texts, or if a name is too long; like
/// read_config() for --config.
void check_inputs_spared(std::span<const std::filesystem::path> outputs, const Options& options,
                         std::size_t keeping = 1);
/// Checks every output before any work: `main`, which is written last, and `others`.
/// @throws like check_inputs_spared() and check_output()
void check_outputs(const std::filesystem::path& main, std::span<const std::filesystem::path> others,
                   const Options& options, const RunOptions& run);
/// A folder for outputs. The constructor creates the folder and its missing parents. The destructor deletes those that
/// are still empty.
class OutputFolder {
 public:
  /// @throws Error kEnvironment
  explicit OutputFolder(const std::filesystem::path& folder);
  /// Throws like the constructor if `folder` cannot be created; leaves nothing behind.
  static void check(const std::filesystem::path& folder);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

 private:
  void remove_empty() const noexcept;
  std::vector<std::filesystem::path> made_;  // innermost first
};
/// Returns the path in the folder of `main` whose name is the stem of `main` followed by `suffix`.
std::filesystem::path sibling_path(const std::filesystem::path& main, const std::string& suffix);
/// Returns the SVG and the PNG of a figure: sibling_path() with `suffix` and the extension.
std::vector<std::filesystem::path> figure_paths(const std::filesystem::path& main, const std::string& suffix);

/// The figures of a run, with the suffixes of figure_paths().
using RunFigures = std::vector<draw::Figure>;
/// Writes the figures of a run and, last, its main output: all of them or none. A note says if a figure has no PNG
/// because rsvg-convert is missing.
/// @param outputs  staged files that are put in place together with these
/// @param figures  called once `result` is known to be writable
/// @throws like dump_json(), OutputSet
void write_outputs(OutputSet& outputs, const std::filesystem::path& main, const Json& result, const RunOptions& run,
                   const std::function<RunFigures()>& figures);

/// Prints the result of a command to stdout: `json` with --json, else `text`.
void print_result(const RunOptions& run, const Json& json, const std::string& text);

}  // namespace kvs::inline run
