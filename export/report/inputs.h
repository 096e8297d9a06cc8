// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/json_fields.h"

namespace kvs::inline results {
struct EvaluationResult;
struct TaskAnswers;
struct TraceResult;
struct LatencyResult;
struct RetentionResult;
struct PerturbationResult;
struct TokenScoresResult;
struct SpectrumResult;
struct Recommendation;
}  // namespace kvs::inline results

namespace kvs::inline report {

enum class OutputKind {
  kSpectrum,
  kConfig,
  kEvaluation,
  kTask,
  kTrace,
  kCost,
  kComparison,
  kSpeeds,
  kPerturbation,
  kRetention,
  kScores,
  kLatency,
  kRecommendation
};
/// Returns the name of a kind: "spectra", "config", ….
std::string_view name_of(OutputKind kind) noexcept;

/// The kind of output that a struct of src/results describes.
template <class Result>
struct KindOf;
template <>
struct KindOf<EvaluationResult> : std::integral_constant<OutputKind, OutputKind::kEvaluation> {};
template <>
struct KindOf<TaskAnswers> : std::integral_constant<OutputKind, OutputKind::kTask> {};
template <>
struct KindOf<TraceResult> : std::integral_constant<OutputKind, OutputKind::kTrace> {};
template <>
struct KindOf<LatencyResult> : std::integral_constant<OutputKind, OutputKind::kLatency> {};
template <>
struct KindOf<RetentionResult> : std::integral_constant<OutputKind, OutputKind::kRetention> {};
template <>
struct KindOf<PerturbationResult> : std::integral_constant<OutputKind, OutputKind::kPerturbation> {};
template <>
struct KindOf<TokenScoresResult> : std::integral_constant<OutputKind, OutputKind::kScores> {};
template <>
struct KindOf<SpectrumResult> : std::integral_constant<OutputKind, OutputKind::kSpectrum> {};
template <>
struct KindOf<Recommendation> : std::integral_constant<OutputKind, OutputKind::kRecommendation> {};

/// An output file of kvspectrum or kvcalibrate.
struct Output {
  std::filesystem::path path;
  std::string name;  // name for the reader: the given path, or the path below the given folder
  OutputKind kind;
  Json json;

  JsonCursor root() const { return {json, name}; }
};

/// The inputs of a report: outputs in the order of the arguments. Outputs of a folder are in byte order of their paths.
struct ReportInputs {
  std::vector<Output> outputs;
  std::vector<std::string> skipped;  // files that are neither results nor belong to one

  /// Returns the outputs of a kind, in order.
  std::vector<const Output*> of(OutputKind kind) const;
  /// Returns the results of one type, in order. @throws Error kInput if a result is malformed
  template <class Result>
  std::vector<Result> of() const {
    std::vector<Result> results;
    for (const Output* output : of(KindOf<Result>::value)) results.push_back(from_json<Result>(output->root()));
    return results;
  }
};

/// Returns true if two paths lead to the same file.
bool is_same_path(const std::filesystem::path& one, const std::filesystem::path& other);
/// Returns the path of a comparison's speeds: FILE_speed.json next to FILE.json.
std::filesystem::path speeds_beside(const std::filesystem::path& comparison);

/// Reads results (JSON) from files and, recursively, from folders. Speeds next to a comparison belong to it. Speeds
/// without their comparison are skipped. A file that is given twice is read once.
/// @throws Error kInput if a file given by name is not a result, if a result is incomplete, or if there is no result;
///         kUnsupported for a newer version; kConflict naming both results if they are of different models.
ReportInputs read_report_inputs(std::span<const std::filesystem::path> paths);

}  // namespace kvs::inline report
