#include "run/outputs.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <iostream>
#include <set>

#include "calibrate/config/config.h"
#include "core/error.h"
#include "draw/figure.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/input_files.h"
#include "io/output_set.h"
#include "run/interruption.h"
#include "run/progress.h"
#include "run/whole_outputs.h"
#include "version.h"

namespace kvs {
namespace {

/// What an unfinished run leaves for --resume.
constexpr const char* kKeptState[] = {".journal", ".partial", ".checkpoint.0", ".checkpoint.1"};
/// What a run may keep beside its output until the end, a capture's manifest for good.
constexpr const char* kBesideOutput[] = {".lock",          ".journal",      ".partial",     ".partial.new",
                                         ".manifest.json", ".checkpoint.0", ".checkpoint.1"};

/// Options of files and folders that a command writes.
constexpr std::string_view kWritten[] = {"out", "out-dir", "save-config", "best-dir", "calibration-dir"};

constexpr std::size_t kMostReportBytes = std::size_t{1} << 30;

/// A file beside `output`, or beside what a link of that name leads to.
std::filesystem::path kept_path(const std::filesystem::path& output, const char* ending) {
  return resolve_output(output) += ending;
}
std::filesystem::path journal_path(const std::filesystem::path& output) { return kept_path(output, ".journal"); }

/// Checks that a file of this name and the folders above it can be made: before any work rather than at the end.
void check_name(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const long limit = ::pathconf(folder.c_str(), _PC_NAME_MAX);
  const std::size_t most = limit > 0 ? static_cast<std::size_t>(limit) : NAME_MAX;
  for (const std::filesystem::path& name : path)
    if (const std::size_t size = name.native().size(); size > most)
      throw Error(ErrorCode::kUsage, path.string(),
                  "found a file name of " + std::to_string(size) + " bytes, expected at most " + std::to_string(most));
}

/// Files that a run keeps until it has finished, by the output that they lie beside.
std::vector<std::filesystem::path>& unfinished_outputs() {
  static std::vector<std::filesystem::path> outputs;
  return outputs;
}

/// A capture's journal begins with what says how its file is laid out.
bool holds_nothing(const std::vector<Json>& records) {
  return records.empty() || (records.size() == 1 && records.front().contains("run_id"));
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// Beside a capture, or beside what a link of that name leads to.
void add_files_beside(const std::string& capture, InputFiles& inputs) {
  std::error_code unresolved;
  const std::string target = std::filesystem::canonical(capture, unresolved).string();
  for (const char* ending : {".manifest.json", ".partial", ".journal"}) {
    inputs.add(capture + ending);
    if (!unresolved) inputs.add(target + ending);
  }
}

void add_files_of(const std::filesystem::path& config, InputFiles& inputs) {
  const Json read = read_config(config);
  for (const Json& file : read.at("files")) inputs.add(config.parent_path() / file.at("path").get<std::string>());
}

/// What every option of a file or folder names, but for those that name what is written.
InputFiles input_files(const Options& options) {
  InputFiles inputs;
  for (const std::string& path : options.list("task")) inputs.add(path);  // one that is a name is no file
  for (const std::string& name : options.paths()) {
    if (std::ranges::find(kWritten, name) != std::end(kWritten)) continue;
    for (const std::string& path : options.list(name)) {
      if (name == "PATH" && is_folder(path)) continue;  // a report says which of its files are results
      if (path == "-")
        inputs.add_standard_input();
      else
        name == "text" || name == "calibration-text" ? inputs.add_texts(path) : inputs.add(path);
      if (name == "model") inputs.add_model(path);
      if (name == "config" || name == "costs") add_files_of(path, inputs);
      if (name == "capture" || name == "FILE") add_files_beside(path, inputs);
    }
  }
  return inputs;
}

}  // namespace

void check_journal(const std::filesystem::path& output, const RunOptions& run) {
  if (run.leads() && !run.replace() && std::filesystem::exists(journal_path(output)))
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

void check_inputs_spared(std::span<const std::filesystem::path> outputs, const Options& options, std::size_t keeping) {
  const InputFiles inputs = input_files(options);
  std::set<std::filesystem::path> names;
  const auto check = [&](const std::filesystem::path& path) {
    check_name(path);
    inputs.check_spared(path);
    std::error_code unresolved;  // check_output says what is wrong with it
    if (!names.insert(full_output_path(path, unresolved)).second && !unresolved)
      throw Error(ErrorCode::kUsage, path.string(), "is the name of two outputs, expected another --out");
  };
  for (const auto& output : outputs) check(output);
  for (const auto& output : outputs.first(keeping))
    for (const char* ending : kBesideOutput) check(kept_path(output, ending));
}

void check_outputs(const std::filesystem::path& main, std::span<const std::filesystem::path> others,
                   const Options& options, const RunOptions& run) {
  if (!run.leads()) return;
  std::vector<std::filesystem::path> all{main};
  all.insert(all.end(), others.begin(), others.end());
  check_inputs_spared(all, options);
  check_output(main, run.replace());  // is_finished says more when the run is known
  for (const auto& path : others) check_output(path, run.replace());
}

OutputFolder::OutputFolder(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::path path = std::filesystem::absolute(folder); !std::filesystem::exists(path, error) && !error;
       path = path.parent_path())
    made_.push_back(path);
  std::filesystem::create_directories(folder, error);
  if (!error && std::filesystem::is_directory(folder)) return;
  remove_empty();
  throw Error(ErrorCode::kEnvironment, folder.string(),
              "cannot be made a folder: " + (error ? error.message() : std::string("a file is there")));
}
void OutputFolder::check(const std::filesystem::path& folder) { const OutputFolder made(folder); }
OutputFolder::~OutputFolder() { remove_empty(); }
void OutputFolder::remove_empty() const noexcept {
  for (const std::filesystem::path& path : made_) ::rmdir(path.c_str());  // fails on one that holds something
}

namespace {

bool was_finished(const std::filesystem::path& main, const std::filesystem::path& state, const RunOptions& run,
                  const std::function<bool(const Json&)>& same, const OtherOutputs& others) {
  if (run.force || !std::filesystem::exists(main)) return false;
  for (const char* ending : {".journal", ".checkpoint.0", ".checkpoint.1"})
    if (run.resume && std::filesystem::exists(kept_path(state, ending))) return false;
  const Json json = run.resume ? parse_json(read_text_file(main, kMostReportBytes), main.string()) : Json();
  if (!run.resume || !same(json)) {
    check_output(main, false);
    return false;
  }
  const auto files = others ? others(json) : std::vector<std::filesystem::path>();
  const auto damaged = find_damaged_output(main, json, files);
  if (damaged)
    print_note("note: " + main.string() + ": finished before, but " + damaged->string() +
                   " is missing or damaged: the run starts anew",
               run.quiet);
  return !damaged;
}

}  // namespace

bool is_finished(const std::filesystem::path& main, const std::filesystem::path& state, const RunOptions& run,
                 const std::function<bool(const Json&)>& same, const OtherOutputs& others) {
  return run.ranks->tell(Json(run.leads() && was_finished(main, state, run, same, others))).get<bool>();
}

bool is_of_run(const Json& output, const std::string& provenance, const Options& options, const Json& identity) {
  const auto is = [&](const std::string& pointer, const Json& wanted) {
    const Json::json_pointer at(pointer);
    return output.contains(at) && output.at(at) == wanted;
  };
  for (const auto& [name, digest] : identity.items())
    if (name.ends_with("_sha256") && !is(name == "model_sha256" ? "/model/sha256" : provenance + '/' + name, digest))
      return false;
  if (identity.contains("bos") && !is(provenance + "/bos", identity.at("bos"))) return false;
  return is(provenance + "/command", options.command()) && is(provenance + "/tool_version", kToolVersion);
}

std::filesystem::path sibling_path(const std::filesystem::path& main, const std::string& suffix) {
  return main.parent_path() / (main.stem().string() + suffix);
}

std::vector<std::filesystem::path> figure_paths(const std::filesystem::path& main, const std::string& suffix) {
  return draw::figure_files(sibling_path(main, suffix));
}

void write_outputs(OutputSet& outputs, const std::filesystem::path& main, const Json& result, const RunOptions& run,
                   const std::function<RunFigures()>& figures) {
  const std::string text = dump_json(result);
  draw::Figures drawn(outputs);
  for (const auto& [suffix, chart] : figures()) drawn.add(sibling_path(main, suffix), chart);
  outputs.add(main, text + '\n');
  outputs.commit(run.replace());
  if (!drawn.note().empty()) print_note(drawn.note(), run.quiet);
}

void print_result(const RunOptions& run, const Json& json, const std::string& text) {
  if (!run.leads()) return;
  if (run.json) {
    std::cout << dump_json(json) << '\n';
  } else if (!text.empty()) {
    std::cout << printable_text(text);
  }
}

}  // namespace kvs
