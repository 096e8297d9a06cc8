#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/json.h"
#include "run/run_options.h"

namespace kvs {

/// The largest main output that is read back.
inline constexpr std::size_t kMaxResultBytes = std::size_t{1} << 30;

/// The files that a run has written beside its main output, by what the main output holds.
using OtherOutputs = std::function<std::vector<std::filesystem::path>(const Json&)>;

/// Whether the same run has finished before, on all ranks. True only with --resume. If a file of the run is missing or
/// damaged, the run starts anew, and a note names the file.
/// @param main    the output that says what the run was
/// @param state   the output beside which an unfinished run keeps its state
/// @param same    whether the content of `main` is of this run
/// @param others  the other outputs: figures and JSON must end as they should, HDF5 files must have their size, files
///                that `main` lists must have their SHA-256, and a PNG may be absent
/// @throws Error kConflict if `main` exists and is of another run, or if the run has neither --resume nor --force
bool is_finished(const std::filesystem::path& main, const std::filesystem::path& state, const RunOptions& run,
                 const std::function<bool(const Json&)>& same, const OtherOutputs& others = {});
/// Whether `output` was made by the command of `options` from the inputs of `identity`.
/// @param provenance  the JSON pointer of the member of `output` that says how it was made
bool is_of_run(const Json& output, const std::string& provenance, const Options& options, const Json& identity);

}  // namespace kvs
