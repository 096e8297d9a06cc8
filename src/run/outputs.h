#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "draw/chart.h"
#include "io/checkpoint.h"
#include "io/journal.h"
#include "io/output_set.h"
#include "run/run_options.h"

namespace kvs {

// Of several ranks rank 0 owns the outputs: elsewhere functions that are given a RunOptions check and print nothing.

/// @throws Error kConflict if OUT.journal is there without --resume or --force.
void check_journal(const std::filesystem::path& output, const RunOptions& run);
/// The journal OUT.journal of a long run, which rank 0 alone opens: a new one, or with --resume the one that is there.
/// @throws Error kConflict as check_journal, or if it belongs to another run.
Journal open_journal(const std::filesystem::path& output, const Json& identity, const RunOptions& run);

/// Checkpoint::load() of what lies beside `output`.
std::optional<Checkpoint::State> load_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& output,
                                                 const RunOptions& run);

/// From here on what the run keeps beside `output` for --resume (journal, checkpoints, the unfinished capture) is its
/// own, and goes with it if there is no use in resuming. open_journal and load_checkpoint call it.
void discard_state_on_error(const std::filesystem::path& output);
/// After an error: drops what a run kept that met one of kData, which it would meet again, or that has done nothing
/// yet.
void discard_hopeless_state(ErrorCode code);

/// Checks that writing `outputs` and the files that a run keeps beside the first `keeping` of them (lock, journal,
/// checkpoints, manifest, the unfinished file) destroys nothing that the command reads, and none of them another.
/// @throws Error kUsage, also if an output lies in the folder of a model or of texts or a name is too long; as
///         read_config for --config.
void check_inputs_spared(std::span<const std::filesystem::path> outputs, const Options& options,
                         std::size_t keeping = 1);
/// Checks every output before any work: `main`, which is written last, and the files that go with it.
/// @throws as check_inputs_spared and check_output
void check_outputs(const std::filesystem::path& main, std::span<const std::filesystem::path> others,
                   const Options& options, const RunOptions& run);
/// A folder for outputs, made if it is not there, with those above it; what was made goes again if it stays empty.
class OutputFolder {
 public:
  /// @throws Error kEnvironment
  explicit OutputFolder(const std::filesystem::path& folder);
  /// Throws as the constructor does where `folder` cannot be made, and leaves nothing.
  static void check(const std::filesystem::path& folder);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

 private:
  void remove_empty() const noexcept;
  std::vector<std::filesystem::path> made_;  // from within
};
/// The files that a run has written beside its main output, by what that holds.
using OtherOutputs = std::function<std::vector<std::filesystem::path>(const Json&)>;
/// With --resume: true, on all ranks, if `main` is there already because the very same run has finished, so that
/// nothing is to do. Where one of its files is missing or damaged the run starts anew, and a line on stderr says so.
/// @param state   the output beside which an unfinished run would have left its journal or checkpoints
/// @param same    whether what `main` holds is of the same run
/// @throws Error kConflict if `main` is another run's, or without --resume and --force anyone's.
bool is_finished(const std::filesystem::path& main, const std::filesystem::path& state, const RunOptions& run,
                 const std::function<bool(const Json&)>& same, const OtherOutputs& others = {});
/// `same` of is_finished for an output whose member at `provenance` (a JSON pointer) says how it was made.
/// @param identity  as run_identity(): its digests are those that the output records
bool is_of_run(const Json& output, const std::string& provenance, const Options& options, const Json& identity);
/// SVG and PNG of a figure beside `main`: the stem of main, then `suffix`.
std::vector<std::filesystem::path> figure_paths(const std::filesystem::path& main, const std::string& suffix);
std::filesystem::path sibling_path(const std::filesystem::path& main, const std::string& suffix);

/// A figure of a run.
struct RunFigure {
  std::string suffix;  // of its name behind the stem of the main output
  draw::Chart chart;
};
using RunFigures = std::vector<RunFigure>;
/// Writes a run's figures and, last, its main output, which says that the run has finished: all of them or none.
/// @param outputs  files that were staged before, which take their places with these
/// A figure without a PNG, for want of rsvg-convert, is said in a note.
/// @param figures  called once `result` is known to be writable
/// @throws as dump_json, OutputSet
void write_outputs(OutputSet& outputs, const std::filesystem::path& main, const Json& result, const RunOptions& run,
                   const std::function<RunFigures()>& figures);
inline void write_outputs(const std::filesystem::path& main, const Json& result, const RunOptions& run,
                          const std::function<RunFigures()>& figures) {
  OutputSet outputs;
  write_outputs(outputs, main, result, run, figures);
}

/// The result of a command: JSON on stdout with --json, else `text`.
void print_result(const RunOptions& run, const Json& json, const std::string& text);

}  // namespace kvs
