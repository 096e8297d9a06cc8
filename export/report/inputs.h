#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/json_fields.h"

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

/// The kind of output that a struct of src/results describes.
template <class Result>
struct KindOf;
template <>
struct KindOf<struct EvaluationResult> : std::integral_constant<OutputKind, OutputKind::kEvaluation> {};
template <>
struct KindOf<struct TaskAnswers> : std::integral_constant<OutputKind, OutputKind::kTask> {};
template <>
struct KindOf<struct LatencyResult> : std::integral_constant<OutputKind, OutputKind::kLatency> {};
template <>
struct KindOf<struct RetentionResult> : std::integral_constant<OutputKind, OutputKind::kRetention> {};
template <>
struct KindOf<struct PerturbationResult> : std::integral_constant<OutputKind, OutputKind::kPerturbation> {};
template <>
struct KindOf<struct TokenScoresResult> : std::integral_constant<OutputKind, OutputKind::kScores> {};
template <>
struct KindOf<struct SpectrumResult> : std::integral_constant<OutputKind, OutputKind::kSpectrum> {};

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
  std::vector<std::string> skipped;  // files that are neither results nor go with one

  /// Those of a kind, in order.
  std::vector<const Output*> of(OutputKind kind) const;
  /// The results of one type, in order. @throws Error kInput where a result is not as its program writes it
  template <class Result>
  std::vector<Result> of() const {
    std::vector<Result> results;
    for (const Output* output : of(KindOf<Result>::value)) results.push_back(from_json<Result>(output->root()));
    return results;
  }
};

/// Whether two paths lead to one file.
bool is_same_path(const std::filesystem::path& one, const std::filesystem::path& other);
/// FILE_speed.json beside a comparison FILE.json: that comparison's speeds.
std::filesystem::path speeds_beside(const std::filesystem::path& comparison);

/// Reads results (JSON) from files and, with all below them, from folders; the speeds beside a comparison go with it,
/// and speeds without their comparison are skipped. A file that is given twice is read once.
/// @throws Error kInput for a file that is given by name and is no result, for a result that is not whole, and if there
///         is none; kUnsupported for a newer version; kConflict naming both if results are of different models.
ReportInputs read_report_inputs(std::span<const std::filesystem::path> paths);

}  // namespace kvs
