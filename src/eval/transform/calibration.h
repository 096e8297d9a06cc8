#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/transform/moments.h"
#include "export/transform_config.h"
#include "model/decoder.h"

namespace kvs {

inline constexpr std::size_t kTransformSinks = 1;
inline constexpr std::size_t kTransformMeasured = 2;  // documents that costs are measured on
/// Of fitting books: before costs are measured, and at the end.
inline constexpr std::size_t kTransformFirstIterations = 3, kTransformIterations = 6;

struct TransformPlan {
  std::size_t bytes = 0;  // stored, of all layers: what a document of `tokens` tokens may take
  std::size_t tokens = 0;
  double outliers = 0.005;  // share of the tokens of a layer that stay in full
  /// [layer] what errors cost, relative to the first-order estimate; empty: as coding one layer alone is measured to.
  std::vector<TransformScales> scales = {};
};

/// The layers that the transform coder is for: those without a sliding window.
TransformGeometry transform_geometry(const ModelConfig& model, std::size_t sinks);
TransformMoments transform_moments(const ModelSource& source, const TransformGeometry& geometry);

/// What gains, sinks, outliers and layers that are not coded take of a document: the least budget.
std::size_t least_transform_bytes(const ModelConfig& model, const TransformGeometry& geometry,
                                  const TransformPlan& plan);

struct TransformCalibration {
  TransformConfig config;
  std::vector<TransformLayer> layers;
};

/// Called with a step's name and what is done of it.
using TransformProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// Calibrates the transform coder to a budget:
///  1. Every layer gets its basis by what its errors cost at the attention's output, and codes of 2 bits a number in
///     the mean; books are fitted to them.
///  2. Keys and values of each layer are coded alone on kTransformMeasured documents; the KL divergence that this
///     costs, against what the estimate says, scales the costs.
///  3. With these, bases are made again, one allocation gives every coefficient of every layer its bits, books are
///     fitted to them, and thresholds leave out the tokens that cost most.
/// @param documents  that the moments are of
/// @param plan  of at least least_transform_bytes()
TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress);

}  // namespace kvs
