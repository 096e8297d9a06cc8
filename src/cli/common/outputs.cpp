#include "cli/common/outputs.h"

#include <iostream>

#include "core/error.h"
#include "io/file.h"

namespace kvs {
namespace {

std::filesystem::path journal_path(const std::filesystem::path& output) { return output.string() + ".journal"; }

}  // namespace

void check_journal(const std::filesystem::path& output, const RunOptions& run) {
  if (!run.replace() && std::filesystem::exists(journal_path(output)))
    throw Error(ErrorCode::kConflict, journal_path(output).string(),
                "found an unfinished run, expected --resume to go on or --force to drop it");
}

Journal open_journal(const std::filesystem::path& output, const Json& identity, const RunOptions& run) {
  check_journal(output, run);
  const std::filesystem::path path = journal_path(output);
  const bool exists = std::filesystem::exists(path);
  if (exists && run.resume) return Journal::resume(path, identity);
  if (exists) std::filesystem::remove(path);
  return Journal::create(path, identity);
}

std::vector<std::filesystem::path> input_paths(const Options& options) {
  std::vector<std::filesystem::path> paths;
  for (const char* name : {"model", "text", "tokens-file", "capture", "config"})
    for (const std::string& path : options.list(name))
      if (path != "-") paths.emplace_back(path);
  return paths;
}

void check_outputs(const std::filesystem::path& main, std::span<const std::filesystem::path> others,
                   const Options& options, const RunOptions& run) {
  const auto inputs = input_paths(options);
  check_output(main, run.force, inputs);
  for (const auto& path : others) check_output(path, run.replace(), inputs);
}

std::filesystem::path beside(const std::filesystem::path& main, const std::string& suffix) {
  return main.parent_path() / (main.stem().string() + suffix);
}

std::vector<std::filesystem::path> figure_paths(const std::filesystem::path& main, const std::string& suffix) {
  return {beside(main, suffix + ".svg"), beside(main, suffix + ".png")};
}

void print_result(const RunOptions& run, const Json& json, const std::string& text) {
  if (run.json) {
    std::cout << dump_json(json) << '\n';
  } else if (!text.empty()) {
    std::cout << text;
  }
}

}  // namespace kvs
