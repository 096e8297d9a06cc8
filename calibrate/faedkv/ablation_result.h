// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "results/ablation.h"

namespace kvs::inline calibrate {

/// NLL sums of an ablation, by document.
struct AblationSums {
  std::size_t scored_per_document = 0;
  std::vector<double> base;  // [document]
  /// [document][layer][chunk]; nullopt if a race (calibrate/faedkv/chunk_race.h) left the chunk out.
  std::vector<std::vector<std::vector<std::optional<double>>>> ablated;

  std::size_t layers() const noexcept { return ablated.front().size(); }
  /// Returns the losses of one layer: [chunk][document], the mean NLL of the document's scored tokens without the chunk
  /// minus that of the unchanged model.
  std::vector<std::vector<std::optional<double>>> losses(std::size_t layer_index) const;
};

/// Returns the numbers of the result. PPL = exp(mean NLL over all scored tokens of all documents). Sums run in document
/// order.
/// @param sums  every chunk in at least one document
AblationResult ablation_result(const AblationSums& sums);
/// Returns the number of documents in which each chunk was ablated: [layer][chunk].
std::vector<std::vector<std::size_t>> ablated_documents(const AblationSums& sums);

}  // namespace kvs::inline calibrate
