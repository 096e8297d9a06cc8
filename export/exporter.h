// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "io/json.h"
#include "io/output_tensor.h"
#include "io/staged_output.h"
#include "model/model.h"

namespace kvs::inline exporting {

/// The input of an exporter. The config has been checked, and it belongs to the model.
struct ExportJob {
  const ModelSource& model;
  const Json& config;
  std::filesystem::path config_path;  // for messages; the folder holds the config's files
  std::filesystem::path out;          // an empty file or folder, moved into place when the exporter has returned
  DType type = DType::kF32;           // of matrices whose type the target leaves open
  bool overlay = false;               // only the files that differ from the model's (Exporter::has_overlay)
  std::size_t tensor_parallel = 1;    // ranks of the engine (Exporter::has_ranks)
  std::string tool_version = {};
  std::function<void(double)> progress = [](double) {};  // the share done, 0 … 1
};

/// One foreign format: a row of the table in exporters.cpp.
struct Exporter {
  std::string_view name;  // as typed
  std::string_view summary;
  std::string_view method;  // of the config; empty: the exporter checks it
  std::string_view needs;   // requirements on the config and the model, for --help
  StagedOutput::Kind kind;
  bool has_matrices;  // writes matrices of ExportJob::type
  bool any_layers;    // true: takes models with layers of several sizes, or without a KV cache of their own
  /// Returns why the target cannot hold a model, as "found …, expected …"; else empty. nullptr: it holds any.
  std::string (*obstacle)(const ModelConfig& model);
  /// Writes job.out. @return members of the command's result: `notes` is a list of lines, `cache` describes the cache
  /// that the target will hold.
  /// @throws Error kUnsupported with the reason if the target cannot express the config.
  Json (*write)(const ExportJob& job);
  bool has_overlay = false;  // can write only the files that differ from the model's (ExportJob::overlay)
  bool has_ranks = false;    // writes something for each of ExportJob::tensor_parallel ranks
  /// Name of the file where `recommend` writes it; empty: it needs more than the config.
  std::string_view preset = {};
  bool for_gguf = false;  // refuses a model that is no GGUF file
};

std::span<const Exporter> exporters() noexcept;
/// Returns nullptr if there is no exporter of this name.
const Exporter* find_exporter(std::string_view name) noexcept;
/// Returns the exporter of this name if it writes Exporter::preset for models of this format; else nullptr.
const Exporter* find_preset(std::string_view name, ModelFormat format) noexcept;
/// @param option  name of the option, for messages.  @throws Error kUsage with the known names
const Exporter& exporter_of(const std::string& to, const std::string& option);
/// Returns two lines for each exporter, for --help.
std::string exporter_lines();
/// @throws Error kUnsupported for a config of another method than the exporter's
void check_method(const Exporter& exporter, const std::filesystem::path& path, const Json& config);
/// Returns why the exporter's target cannot hold a model, by its layers or Exporter::obstacle; else empty.
std::string obstacle_of(const Exporter& exporter, const ModelConfig& model);
/// @throws Error kUnsupported with obstacle_of()
void check_model(const Exporter& exporter, const ModelConfig& model);
/// Returns the text output of an export.
std::string export_text(const Json& result);

/// Returns a callback for the writers of `tensors`, which reports the written share of the bytes to the job's progress.
std::function<void(std::uint64_t)> byte_progress(const ExportJob& job, std::span<const OutputTensor> tensors);

/// The record in an exported folder: it describes the export and marks the folder as replaceable.
inline constexpr std::string_view kExportRecord = "kvspectrum-export.json";

}  // namespace kvs::inline exporting
