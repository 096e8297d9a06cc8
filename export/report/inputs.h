#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace kvs {

enum class OutputKind {
  kSpectrum,
  kConfig,
  kEvaluation,
  kTask,
  kCost,
  kComparison,
  kSpeeds,
  kPerturbation,
  kRetention,
  kScores,
  kLatency
};
/// "spectra", "config", ….
std::string_view name_of(OutputKind kind) noexcept;

/// An output of the two programs.
struct Output {
  std::filesystem::path path;
  std::string name;  // as a reader knows the file: the path given, or below the folder given
  OutputKind kind;
  Json json;

  JsonCursor root() const { return {json, name}; }
};

/// What a report is made from: outputs in the order of the arguments, of a folder in byte order of their paths.
struct ReportInputs {
  std::vector<Output> outputs;
  std::vector<std::string> skipped;  // files of folders that are neither results nor go with one

  /// Those of a kind, in order.
  std::vector<const Output*> of(OutputKind kind) const;
};

/// Reads results (JSON) from files and, with all below them, from folders; FILE_speed.json beside a comparison FILE
/// goes with it. A file that is given twice is read once.
/// @throws Error kInput for a file that is given by name and is no result, for a result that is not whole, and if there
///         is none; kUnsupported for a newer version; kConflict naming both if results are of different models.
ReportInputs read_report_inputs(std::span<const std::filesystem::path> paths);

}  // namespace kvs
