#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/elitekv/factor_file.h"
#include "calibrate/elitekv/search.h"
#include "kernels/calibration_ops.h"
#include "model/decoder.h"
#include "states/state_source.h"

namespace kvs {

/// EliteKV of several sizes from one search: pairs counted by attention, factors weighed by both sides, queries and
/// outputs fitted (docs/elitekv.md), one pair (r, d_ckv) for all layers.
class EliteSeries {
 public:
  /// @param fitted  documents that it is calibrated on;  @param held  which choose the pair
  /// @param states  of the fitted documents
  /// @param most    the largest size to come, as a share of the full cache
  EliteSeries(const ModelSource& source, Decoder& decoder, CalibrationOps& ops, StateSource& states,
              std::span<const std::vector<std::int32_t>> fitted, std::span<const std::vector<std::int32_t>> held,
              double most);

  /// Writes the config of `share` of the full cache, and its factors beside it (.safetensors): of elite_candidates()
  /// the pair of least perplexity on the held documents. The first call makes the search: a pass over the documents.
  /// @throws Error kUsage if no pair has that size
  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const FactorProgress& progress);

 private:
  void search(const FactorProgress& progress);

  const ModelSource& source_;
  Decoder& decoder_;
  CalibrationOps& ops_;
  std::span<const std::vector<std::int32_t>> fitted_, held_;
  EliteSearchPlan plan_;
  EliteSearch search_;
};

/// Bytes that it holds at its peak beside the model and a pass (elite_memory).
double elite_series_memory(const ModelConfig& model, DType compute, double most);

/// The `count` pairs of at most `share` of the full cache whose rotated values are nearest to three tenths of it, where
/// those that were best on SmolLM2 lie (docs/performance.md#quality), ascending in r.
std::vector<EliteCandidate> elite_candidates(const ModelConfig& model, double share, std::size_t count);

}  // namespace kvs
