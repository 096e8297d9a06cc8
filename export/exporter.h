#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "core/dtype.h"
#include "io/json.h"
#include "io/output_tensor.h"
#include "io/staged_output.h"
#include "model/model.h"

namespace kvs::inline exporters {

/// What an exporter works on. The config has been read, checked, and found to be the model's.
struct ExportJob {
  const ModelSource& model;
  const Json& config;
  std::filesystem::path config_path;  // for messages, and where its files lie
  std::filesystem::path out;          // an empty file or folder, put in place when the exporter has returned
  DType type = DType::kF32;           // of matrices that the target lets choose
  std::function<void(double)> progress = [](double) {};  // the share done, 0 … 1
};

/// One foreign format: a row of the table in exporters.cpp.
struct Exporter {
  std::string_view name;  // as typed
  std::string_view summary;
  std::string_view method;  // of the config; empty: it checks that itself
  std::string_view needs;   // what it asks of the config and the model, for --help
  StagedOutput::Kind kind;
  bool has_matrices;  // of ExportJob::type
  /// Writes job.out. @return what is worth telling of it, as members of the command's result: `notes` is a list of
  /// lines, `cache` what the target will hold.
  /// @throws Error kUnsupported with the reason if the target cannot express the config.
  Json (*write)(const ExportJob& job);
};

std::span<const Exporter> exporters() noexcept;
/// nullptr if there is none of this name.
const Exporter* find_exporter(std::string_view name) noexcept;
/// @param option  that names it.  @throws Error kUsage with the known names
const Exporter& exporter_of(const std::string& to, const std::string& option);
/// Two lines for each exporter, for --help.
std::string exporter_lines();
/// @throws Error kUnsupported for a config of another method than the exporter's
void check_method(const Exporter& exporter, const std::filesystem::path& path, const Json& config);
/// What an export says on stdout, by its result.
std::string export_text(const Json& result);

/// For the writers of `tensors`: passes the share of their bytes that is written on to the job's progress.
std::function<void(std::uint64_t)> byte_progress(const ExportJob& job, std::span<const OutputTensor> tensors);

/// The file that an export leaves in a folder it writes: what it is, and that it may be replaced.
inline constexpr std::string_view kExportRecord = "kvspectrum-export.json";

}  // namespace kvs::inline exporters
