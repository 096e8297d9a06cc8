// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/journal.h"
#include "run/run_options.h"

namespace kvs::inline run {

// A run keeps its state next to its output until the output is in place: a journal, two checkpoints, or an unfinished
// capture. With several ranks, rank 0 keeps it.

/// Returns the path of a file next to `output`. If `output` is a link, the file is next to the link's target.
std::filesystem::path kept_path(const std::filesystem::path& output, const char* ending);

/// @throws Error kConflict if OUT.journal exists and the run has neither --resume nor --force.
void check_journal(const std::filesystem::path& output, const RunOptions& run);
/// Opens OUT.journal: with --resume the existing one, otherwise a new one. Only rank 0 calls this.
/// @throws Error kConflict like check_journal(), or if the journal belongs to another run.
Journal open_journal(const std::filesystem::path& output, const Json& identity, const RunOptions& run);
/// Calls Checkpoint::load() for the files next to `output`.
std::optional<Checkpoint::State> load_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& output,
                                                 const RunOptions& run);

/// From now on the state next to `output` belongs to this run. open_journal() and load_checkpoint() call this.
void discard_state_on_error(const std::filesystem::path& output);
/// Called after an error. Deletes the state if resuming is useless: after kData, which would occur again, or if the run
/// has done nothing yet.
void discard_hopeless_state(ErrorCode code);

}  // namespace kvs::inline run
