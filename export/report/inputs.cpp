// SPDX-License-Identifier: Apache-2.0
#include "export/report/inputs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "caches/old_parameters.h"
#include "calibrate/config/config.h"
#include "core/error.h"
#include "io/descriptor.h"
#include "io/file.h"

namespace kvs::inline report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxResultBytes = std::size_t{64} << 20;
constexpr int kMaxFolderDepth = 8;  // maximum depth below a given folder
constexpr std::int64_t kResultVersion = 1;

/// A result is identified by its `format`, or by these members.
struct KindRow {
  OutputKind kind;
  std::string_view name, format;
  std::array<std::string_view, 3> members;
};
constexpr std::array kKinds{
    KindRow{OutputKind::kSpectrum, "spectra", "kvspectrum-spectrum", {}},
    KindRow{OutputKind::kConfig, "config", "kvspectrum-config", {}},
    KindRow{OutputKind::kComparison, "comparison", "kvspectrum-comparison", {}},
    KindRow{OutputKind::kRecommendation, "recommendation", "kvspectrum-recommendation", {}},
    KindRow{OutputKind::kSpeeds, "speeds of a comparison", "kvspectrum-speeds", {}},
    KindRow{OutputKind::kPerturbation, "similarities of perturbed texts", "kvspectrum-perturbation", {}},
    KindRow{OutputKind::kRetention, "perplexities of kept bands", "kvspectrum-retention", {}},
    KindRow{OutputKind::kScores, "token scores", "kvspectrum-scores", {}},
    KindRow{OutputKind::kLatency, "latencies", "kvspectrum-latency", {}},
    KindRow{OutputKind::kTask, "answers to a task", "", {"task", "samples", "tool_version"}},
    KindRow{OutputKind::kTrace, "generated texts", "", {"trace", "prompts_sha256", "tool_version"}},
    KindRow{OutputKind::kEvaluation, "evaluation", "", {"method", "ppl", "tool_version"}},
    KindRow{OutputKind::kCost, "cost by arithmetic", "", {"geometry", "products_per_token", "bytes_per_token"}}};

/// Extensions of files that the programs write next to results.
constexpr std::array<std::string_view, 11> kCompanions{".svg",           ".png",         ".h5",
                                                       ".safetensors",   ".traces.json", ".html",
                                                       ".manifest.json", ".lock",        "llama-server.ini",
                                                       "vllm.yaml",      "sample.txt"};

std::optional<OutputKind> kind_of(const Json& json) {
  if (!json.is_object()) return {};
  const Json format = json.value("format", Json(""));
  const auto row = std::ranges::find_if(kKinds, [&](const KindRow& kind) {
    return format == kind.format && std::ranges::all_of(kind.members, [&](std::string_view member) {
             return member.empty() || json.contains(member);
           });
  });
  return row == kKinds.end() ? std::nullopt : std::optional(row->kind);
}

void check_form(Output& output) {
  rename_old_parameters(output.json, output.name);
  const JsonCursor root = output.root();
  if (output.json.contains("format")) {
    const std::int64_t version = root.at("version").integer(1);
    if (version > kResultVersion)
      throw Error(ErrorCode::kUnsupported, output.name + ": /version",
                  "found " + std::to_string(version) + ", expected at most " + std::to_string(kResultVersion));
  }
  if (output.kind == OutputKind::kConfig) check_config(output.json, output.name);
}

/// Adds the regular files of a folder and its subfolders. @throws Error naming a folder that cannot be read
void add_files_below(const fs::path& folder, int depth, std::set<fs::path>& files) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (const fs::directory_iterator end; !error && entries != end; entries.increment(error)) {
    std::error_code unknown;  // ignored: the file is gone, or the link is broken
    if (entries->is_regular_file(unknown)) files.insert(entries->path());
    const bool is_folder = entries->is_directory(unknown) && !entries->is_symlink(unknown);
    if (is_folder && depth < kMaxFolderDepth) add_files_below(entries->path(), depth + 1, files);
  }
  if (error) throw Error(code_of_read_errno(error.value()), folder.string(), "cannot be read: " + error.message());
}

fs::path resolved(const fs::path& path) {
  std::error_code unresolved;
  return fs::weakly_canonical(path, unresolved);
}

class Reader {
 public:
  void add_file(const fs::path& path) {
    if (!first_time(path)) return;
    Output output{path, path.string(), {}, parse_json(read_text_file(path, kMaxResultBytes), path.string())};
    const auto kind = kind_of(output.json);
    if (!kind)
      throw Error(ErrorCode::kInput, path.string(),
                  "found " + describe_json(output.json) + ", expected a result of kvspectrum or kvcalibrate");
    output.kind = *kind;
    keep(std::move(output));
    const fs::path speeds = speeds_beside(path);
    if (*kind == OutputKind::kComparison && is_there(speeds)) add_file(speeds);
  }

  void add_folder(const fs::path& folder) {
    std::set<fs::path> files;
    add_files_below(folder, 0, files);
    for (const fs::path& file : files) add_found(file, file.lexically_relative(folder).string());
  }

  ReportInputs inputs;

 private:
  bool first_time(const fs::path& path) { return seen_.insert(resolved(path)).second; }

  void keep(Output output) {
    check_form(output);
    inputs.outputs.push_back(std::move(output));
  }

  /// Adds a file found in a folder. It may be any kind of file.
  void add_found(const fs::path& path, const std::string& name) {
    if (!first_time(path)) return;
    Output output{path, name, {}, {}};
    std::optional<OutputKind> kind;
    if (path.extension() == ".json") {
      try {
        output.json = parse_json(read_text_file(path, kMaxResultBytes), path.string());
        kind = kind_of(output.json);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kInput) throw;  // kInput: the file is not a result
      }
    }
    if (!kind) {
      const auto ends_name = [&](std::string_view ending) { return name.ends_with(ending); };
      if (std::ranges::none_of(kCompanions, ends_name)) inputs.skipped.push_back(name);
      return;
    }
    output.kind = *kind;
    keep(std::move(output));
  }

  std::set<fs::path> seen_;
};

/// Moves speeds without their comparison to `skipped`, as their cells are unknown.
void skip_lone_speeds(ReportInputs& inputs) {
  std::set<fs::path> wanted;
  for (const Output* comparison : inputs.of(OutputKind::kComparison))
    wanted.insert(resolved(speeds_beside(comparison->path)));
  std::erase_if(inputs.outputs, [&](const Output& output) {
    const bool is_lone = output.kind == OutputKind::kSpeeds && !wanted.contains(resolved(output.path));
    if (is_lone) inputs.skipped.push_back(output.name + " (speeds without their comparison)");
    return is_lone;
  });
}

std::string model_of(const Output& output) {
  const JsonCursor model = output.root().at("model");
  return model.at("sha256").string() + " (" + model.at("name").string() + ")";
}

/// Refuses an output whose model has another geometry or rotation than `first`, if both state it. The same weights
/// compute different values with another config.json.
void check_one_geometry(const Output& output, const Output& first) {
  const JsonCursor found = output.root().at("model"), expected = first.root().at("model");
  const auto check = [&](const JsonCursor& one, const JsonCursor& other, const char* name) {
    if (one.has(name) && other.has(name) && one.at(name).value() != other.at(name).value())
      throw Error(ErrorCode::kConflict, output.name + ": " + "/model/" + name,
                  "found " + dump_json(one.at(name).value(), -1) + ", expected " +
                      dump_json(other.at(name).value(), -1) + " of " + first.name);
  };
  for (const char* name : {"architecture", "layers", "query_heads", "kv_heads", "head_dim"})
    check(found, expected, name);
  if (!found.has("rope") || !expected.has("rope")) return;
  for (const char* name : {"theta", "scaling", "rotary_dim"}) check(found.at("rope"), expected.at("rope"), name);
}

void check_one_model(const std::vector<Output>& outputs) {
  const Output* first = nullptr;
  for (const Output& output : outputs) {
    if (output.kind == OutputKind::kCost || output.kind == OutputKind::kSpeeds)
      continue;  // not about a model's weights
    if (first == nullptr) first = &output;
    if (output.root().at("model").at("sha256").string() != first->root().at("model").at("sha256").string())
      throw Error(ErrorCode::kConflict, output.name + ": /model/sha256",
                  "found " + model_of(output) + ", expected " + model_of(*first) + " of " + first->name);
    check_one_geometry(output, *first);
  }
}

}  // namespace

std::string_view name_of(OutputKind kind) noexcept { return std::ranges::find(kKinds, kind, &KindRow::kind)->name; }

std::vector<const Output*> ReportInputs::of(OutputKind kind) const {
  std::vector<const Output*> found;
  for (const Output& output : outputs)
    if (output.kind == kind) found.push_back(&output);
  return found;
}

bool is_same_path(const fs::path& one, const fs::path& other) { return resolved(one) == resolved(other); }

fs::path speeds_beside(const fs::path& comparison) {
  return comparison.parent_path() / (comparison.stem().string() + "_speed.json");
}

ReportInputs read_report_inputs(std::span<const fs::path> paths) {
  Reader reader;
  for (const fs::path& path : paths) {
    struct stat status {};  // add_file() reports errors
    if (find_status(path, status) && S_ISDIR(status.st_mode)) {
      reader.add_folder(path);
    } else {
      reader.add_file(path);
    }
  }
  skip_lone_speeds(reader.inputs);
  if (reader.inputs.outputs.empty())
    throw Error(ErrorCode::kInput, paths.empty() ? "report" : paths.front().string(),
                "found no result of kvspectrum or kvcalibrate");
  check_one_model(reader.inputs.outputs);
  return std::move(reader.inputs);
}

}  // namespace kvs::inline report
