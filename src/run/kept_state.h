#pragma once

#include <filesystem>
#include <optional>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/journal.h"
#include "run/run_options.h"

namespace kvs {

// A run keeps what it has done beside its output until the output is in place: a journal, two checkpoints, or an
// unfinished capture. Of several ranks rank 0 keeps it.

/// A file beside `output`. Where `output` is a link, the file lies beside the link's target.
std::filesystem::path kept_path(const std::filesystem::path& output, const char* ending);

/// @throws Error kConflict if OUT.journal exists and the run has neither --resume nor --force.
void check_journal(const std::filesystem::path& output, const RunOptions& run);
/// Opens OUT.journal: with --resume the one that exists, else a new one. Only rank 0 calls this.
/// @throws Error kConflict as check_journal, or if the journal belongs to another run.
Journal open_journal(const std::filesystem::path& output, const Json& identity, const RunOptions& run);
/// Checkpoint::load() of the files beside `output`.
std::optional<Checkpoint::State> load_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& output,
                                                 const RunOptions& run);

/// From now on the state beside `output` belongs to this run. open_journal and load_checkpoint call this.
void discard_state_on_error(const std::filesystem::path& output);
/// Called after an error. Deletes the state if resuming is of no use: after kData, which the run would meet again, or
/// if the run has done nothing yet.
void discard_hopeless_state(ErrorCode code);

}  // namespace kvs
