#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/transform/config.h"
#include "calibrate/transform/moments.h"
#include "model/decoder.h"

namespace kvs {

inline constexpr std::size_t kTransformSinks = 1;
inline constexpr std::size_t kTransformMeasured = 2;  // documents that costs are measured on
/// Of fitting books: before costs are measured, and at the end.
inline constexpr std::size_t kTransformFirstIterations = 3, kTransformIterations = 6;

struct TransformPlan {
  std::size_t bytes = 0;  // stored, of all layers: what a document of `tokens` tokens may take
  std::size_t tokens = 0;
  double outliers = 0;  // share of the tokens of a layer that stay in full; 0 with TransformRows::kHead
  TransformRows rows = TransformRows::kLayer;
  /// [layer] what errors cost, relative to the first-order estimate; empty: as coding one layer alone is measured to.
  std::vector<TransformScales> scales = {};
  /// What coding the keys and the values of the first layers alone was measured to cost, by a run that was stopped.
  std::vector<TransformScales> losses = {};
};

/// The standard of TransformPlan::outliers.
double transform_outliers(TransformRows rows) noexcept;
/// The standard of TransformLayer::recent for documents of so many tokens: a 32nd of them, at most 16.
std::size_t transform_recent(std::size_t tokens) noexcept;
/// The transform coder of all layers.
TransformGeometry transform_geometry(const ModelConfig& model, std::size_t sinks, std::size_t recent);
/// The same with the standard sinks and tokens that wait, for documents of so many tokens.
TransformGeometry standard_transform_geometry(const ModelConfig& model, std::size_t tokens);
TransformMoments transform_moments(const ModelSource& source, const TransformGeometry& geometry);

/// What gains, sinks, outliers and tokens that wait take of a document: the least budget.
std::size_t min_transform_bytes(const ModelConfig& model, const TransformGeometry& geometry, const TransformPlan& plan);

struct TransformCalibration {
  TransformConfig config;
  std::vector<TransformLayer> layers;
};

/// Called with a step's name and what is done of it.
using TransformProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// Called with TransformPlan::losses as they become known.
using TransformMeasured = std::function<void(std::span<const TransformScales> losses)>;

/// Calibrates the transform coder to a budget:
///  1. Every layer gets its basis by what its errors cost at the attention's output, and codes of 2 bits a number in
///     the mean; books are fitted to them.
///  2. Keys and values of each layer are coded alone on kTransformMeasured documents; the KL divergence that this
///     costs, against what the estimate says, scales the costs.
///  3. With these, bases are made again, one allocation gives every coefficient of every layer its bits, books are
///     fitted to them, and thresholds leave out the tokens that cost most.
/// @param documents  that the moments are of
/// @param plan  of at least min_transform_bytes()
TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress,
                                         const TransformMeasured& measured = {});

}  // namespace kvs
