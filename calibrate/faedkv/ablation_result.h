#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kvs {

/// NLL sums of an ablation, by document.
struct AblationSums {
  std::size_t scored_per_document = 0;
  std::vector<double> base;  // [document]
  /// [document][layer][chunk]; nothing where a race (calibrate/faedkv/chunk_race.h) left the chunk out.
  std::vector<std::vector<std::vector<std::optional<double>>>> ablated;

  std::size_t layers() const noexcept { return ablated.front().size(); }
  /// Of one layer: [chunk][document], the mean NLL of the document's scored tokens without the chunk minus that of the
  /// unchanged model.
  std::vector<std::vector<std::optional<double>>> losses(std::size_t layer) const;
};

struct AblationResult {
  double nll_base = 0, nll_error = 0;      // mean of all scored tokens, nats, and its standard error over documents
  std::vector<std::vector<double>> delta;  // [layer][chunk]: (PPL − PPL_base) / PPL_base (growth()) over its documents
  std::vector<std::vector<std::size_t>> documents;  // [layer][chunk]: how many those are
  /// 95 % interval of each Δ over documents; none below two documents. Student's t on the paired difference of a
  /// document's mean NLL, mapped by exp(·) − 1.
  std::vector<std::vector<std::optional<std::pair<double, double>>>> interval;
};

/// PPL = exp(mean NLL over all scored tokens of all documents). Sums run in document order.
/// @param sums  every chunk in at least one document
AblationResult ablation_result(const AblationSums& sums);

/// Δ of one layer mapped linearly so that its least is 0 and its largest 1; all 0 if they are equal.
std::vector<double> scaled_to_unit(std::span<const double> delta);

}  // namespace kvs
