// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline calibrate {

/// EliteKV at several sizes from one search: pairs weighted by attention, factors weighted by inputs and outputs,
/// queries and outputs fitted (docs/elitekv.md), one pair (r, d_ckv) for all layers.
class EliteSeries {
 public:
  /// @param fitted  documents for the calibration;  @param held  documents that select the pair
  /// @param states  of the fitted documents
  /// @param most    the largest size needed, as a share of the full cache
  EliteSeries(const ModelSource& source, Decoder& decoder, CalibrationOps& ops, StateSource& states,
              std::span<const std::vector<std::int32_t>> fitted, std::span<const std::vector<std::int32_t>> held,
              double most);

  /// Writes the config for `share` of the full cache and, next to it, its factors (.safetensors): the pair of
  /// elite_candidates() with the lowest perplexity on the held-out documents. The first call runs the search: a pass
  /// over the documents.
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

/// Returns the peak bytes in addition to the model and a pass (elite_memory()).
double elite_series_memory(const ModelConfig& model, DType compute, double most);

/// Returns the `count` pairs of at most `share` of the full cache whose rotated values are closest to three tenths of
/// the cache, ascending in r; the best pairs on SmolLM2 lie there (docs/results/elitekv.md).
std::vector<EliteCandidate> elite_candidates(const ModelConfig& model, double share, std::size_t count);

}  // namespace kvs::inline calibrate
