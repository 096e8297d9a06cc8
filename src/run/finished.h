// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/json.h"
#include "run/run_options.h"

namespace kvs::inline run {

/// The largest main output that is read back.
inline constexpr std::size_t kMaxResultBytes = std::size_t{1} << 30;

/// Returns the files that a run has written in addition to its main output, given the main output's content.
using OtherOutputs = std::function<std::vector<std::filesystem::path>(const Json&)>;

/// Returns true, on all ranks, if the same run has finished before; only with --resume. If a file of the run is missing
/// or damaged, the run starts again, and a note names the file.
/// @param main    the output that describes the run
/// @param state   the output next to which an unfinished run keeps its state
/// @param same    returns true if the content of `main` belongs to this run
/// @param others  the other outputs: figures and JSON must be complete, HDF5 files must have their size, files that
/// `main` lists must have their SHA-256, and a PNG may be absent
/// @throws Error kConflict if `main` exists and belongs to another run, or if the run has neither --resume nor --force
bool is_finished(const std::filesystem::path& main, const std::filesystem::path& state, const RunOptions& run,
                 const std::function<bool(const Json&)>& same, const OtherOutputs& others = {});
/// Returns true if the command of `options` made `output` from the inputs of `identity`.
/// @param provenance  JSON pointer to the member of `output` that describes how it was made
bool is_of_run(const Json& output, const std::string& provenance, const Options& options, const Json& identity);

}  // namespace kvs::inline run
