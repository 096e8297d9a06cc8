// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "caches/layer_cache.h"
#include "io/json.h"
#include "model/decoder.h"
#include "results/evaluation.h"

namespace kvs::inline calibrate {

/// Calibrated caches compared with the full cache on documents of the calibration: `quality` of a config.
struct MeasuredQuality {
  std::string text;  // which documents
  CacheQuality measured;
};

/// Number of documents that the quality is measured on, at most: the first ones.
inline constexpr std::size_t kQualityDocuments = 2;

/// @param done  called with the number of documents so far
MeasuredQuality measured_quality(const std::function<Cache()>& make, Decoder& decoder,
                                 std::span<const std::vector<std::int32_t>> documents,
                                 const std::function<void(std::size_t)>& done);
Json to_json(const MeasuredQuality& of);
/// Returns the last line of a summary: "  on the first 2 calibration documents: …".
std::string summary_line(const MeasuredQuality& quality);

}  // namespace kvs::inline calibrate
