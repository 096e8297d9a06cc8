// SPDX-License-Identifier: Apache-2.0
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
#include "run/kept_state.h"
#include "run/progress.h"

namespace kvs::inline run {
namespace {

/// Files that a run may keep next to its output until the end; a capture's manifest is kept permanently.
constexpr const char* kBesideOutput[] = {".lock",          ".journal",      ".partial",     ".partial.new",
                                         ".manifest.json", ".checkpoint.0", ".checkpoint.1"};

/// Options of files and folders that a command writes.
constexpr std::string_view kWritten[] = {"out", "out-dir", "save-config", "best-dir", "calibration-dir", "trace-out"};

/// Checks, before any work, that a file of this name and its folders can be created.
void check_name(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const long limit = ::pathconf(folder.c_str(), _PC_NAME_MAX);
  const std::size_t most = limit > 0 ? static_cast<std::size_t>(limit) : NAME_MAX;
  for (const std::filesystem::path& name : path)
    if (const std::size_t size = name.native().size(); size > most)
      throw Error(ErrorCode::kUsage, path.string(),
                  "found a file name of " + std::to_string(size) + " bytes, expected at most " + std::to_string(most));
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// Adds the files next to a capture, or next to the target of a link.
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

/// Returns the files and folders of all options except those that are written.
InputFiles input_files(const Options& options) {
  InputFiles inputs;
  for (const std::string& path : options.list("task")) inputs.add(path);  // names of tasks are not files
  for (const std::string& name : options.paths()) {
    if (std::ranges::find(kWritten, name) != std::end(kWritten)) continue;
    for (const std::string& path : options.list(name)) {
      if (name == "PATH" && is_folder(path)) continue;  // a report decides which of its files are results
      if (path == "-")
        inputs.add_standard_input();
      else
        name == "text" || name == "calibration-text" ? inputs.add_texts(path) : inputs.add(path);
      if (name == "model") inputs.add_model(path);
      if (name == "config" || name == "reuse-sensitivities") add_files_of(path, inputs);
      if (name == "capture" || name == "FILE") add_files_beside(path, inputs);
    }
  }
  return inputs;
}

}  // namespace

void check_inputs_spared(std::span<const std::filesystem::path> outputs, const Options& options, std::size_t keeping) {
  const InputFiles inputs = input_files(options);
  std::set<std::filesystem::path> names;
  const auto check = [&](const std::filesystem::path& path) {
    check_name(path);
    inputs.check_spared(path);
    std::error_code unresolved;  // check_output() reports the problem
    if (!names.insert(full_output_path(path, unresolved)).second && !unresolved)
      throw Error(ErrorCode::kUsage, path.string(), "is the name of two outputs, expected another --out");
  };
  for (const auto& output : outputs) check(output);
  for (const auto& output : outputs.first(keeping))
    for (const char* ending : kBesideOutput) check(kept_path(output, ending));
}

void check_outputs(const std::filesystem::path& main, std::span<const std::filesystem::path> others,
                   const Options& options, const RunOptions& run) {
  if (!run.is_root()) return;
  std::vector<std::filesystem::path> all{main};
  all.insert(all.end(), others.begin(), others.end());
  check_inputs_spared(all, options);
  check_output(main, run.replace());  // is_finished() reports more once the run is known
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
  for (const std::filesystem::path& path : made_) ::rmdir(path.c_str());  // fails if the folder is not empty
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
  if (!run.is_root()) return;
  if (run.json) {
    std::cout << dump_json(json) << '\n';
  } else if (!text.empty()) {
    std::cout << printable_text(text);
  }
}

}  // namespace kvs::inline run
