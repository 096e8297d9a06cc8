// SPDX-License-Identifier: Apache-2.0
#include "run/kept_state.h"

#include <vector>

#include "io/descriptor.h"
#include "io/file.h"
#include "run/interruption.h"

namespace kvs::inline run {
namespace {

/// Files that an unfinished run leaves for --resume.
constexpr const char* kKeptState[] = {".journal", ".partial", ".checkpoint.0", ".checkpoint.1"};

std::filesystem::path journal_path(const std::filesystem::path& output) { return kept_path(output, ".journal"); }

/// The outputs next to which this run keeps files until it has finished.
std::vector<std::filesystem::path>& unfinished_outputs() {
  static std::vector<std::filesystem::path> outputs;
  return outputs;
}

/// The first record of a capture's journal only describes the file's layout.
bool holds_nothing(const std::vector<Json>& records) {
  return records.empty() || (records.size() == 1 && records.front().contains("run_id"));
}

}  // namespace

std::filesystem::path kept_path(const std::filesystem::path& output, const char* ending) {
  return resolve_output(output) += ending;
}

void check_journal(const std::filesystem::path& output, const RunOptions& run) {
  if (run.is_root() && !run.replace() && std::filesystem::exists(journal_path(output)))
    refuse_unfinished(journal_path(output));
}

Journal open_journal(const std::filesystem::path& output, const Json& identity, const RunOptions& run) {
  check_journal(output, run);
  const std::filesystem::path path = journal_path(output);
  const bool exists = std::filesystem::exists(path);
  if (exists && !run.resume) std::filesystem::remove(path);
  Journal journal = exists && run.resume ? Journal::resume(path, identity) : Journal::create(path, identity);
  discard_state_on_error(output);
  return journal;
}

std::optional<Checkpoint::State> load_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& output,
                                                 const RunOptions& run) {
  auto state = checkpoint.load(run.resume, run.force);
  discard_state_on_error(output);
  return state;
}

void discard_state_on_error(const std::filesystem::path& output) {
  unfinished_outputs().push_back(output);
  note_kept_state();
}

void discard_hopeless_state(ErrorCode code) {
  for (const std::filesystem::path& output : unfinished_outputs()) {
    const OutputLock lock(output, true);
    const std::filesystem::path journal = journal_path(output);
    const bool idle = std::filesystem::exists(journal) && holds_nothing(Journal::read(journal).records);
    if (code != ErrorCode::kData && !idle) continue;
    for (const char* ending : kKeptState) std::filesystem::remove(kept_path(output, ending));
  }
}

}  // namespace kvs::inline run
