// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/transform/config.h"
#include "calibrate/transform/moments.h"
#include "model/decoder.h"

namespace kvs::inline calibrate {

inline constexpr std::size_t kTransformSinks = 1;
inline constexpr std::size_t kTransformMeasured = 2;  // number of documents on which costs are measured
/// Iterations of fitting books: before costs are measured, and at the end.
inline constexpr std::size_t kTransformFirstIterations = 3, kTransformIterations = 6;

struct TransformPlan {
  std::size_t bytes = 0;  // stored bytes of all layers: the budget for a document of `tokens` tokens
  std::size_t tokens = 0;
  double outliers = 0;  // share of a layer's tokens kept in full; 0 with TransformRows::kHead and in the storage form
  TransformRows rows = TransformRows::kLayer;
  TransformForm form = TransformForm::kRandomAccess;
  std::size_t coefficients = 0;  // storage form: the most of a row that are coded; 0: all that pay
  /// [layer] costs of errors relative to the first-order estimate; empty: measured by coding one layer at a time.
  std::vector<TransformScales> scales = {};
  /// Measured costs of coding the keys and the values of the first layers alone, from an interrupted run.
  std::vector<TransformScales> losses = {};
};

/// The default of TransformPlan::outliers.
double transform_outliers(TransformRows rows) noexcept;
/// The default of TransformLayer::recent for documents of `tokens` tokens: a 32nd of them, at most 16.
std::size_t transform_recent(std::size_t tokens) noexcept;
/// Returns the geometry of the transform coder for all layers with a KV cache.
/// @param layers_per_group  the most neighbouring layers that share a row; layers with other heads or another window,
/// and layers whose keys and values other layers read, do not share one
TransformGeometry transform_geometry(const ModelConfig& model, std::size_t sinks, std::size_t recent,
                                     std::size_t layers_per_group = 1);
/// Returns the geometry with the default sinks and waiting tokens, for documents of `tokens` tokens.
TransformGeometry standard_transform_geometry(const ModelConfig& model, std::size_t tokens);
TransformMoments transform_moments(const ModelSource& source, const TransformGeometry& geometry);

/// Returns the smallest budget: the bytes of gains (the storage form has none), sinks, outliers and waiting tokens of a
/// document.
std::size_t min_transform_bytes(const ModelConfig& model, const TransformGeometry& geometry, const TransformPlan& plan);

struct TransformCalibration {
  TransformConfig config;
  std::vector<TransformLayer> layers;
};

/// Called with a step's name, the completed units and their total.
using TransformProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// Called with TransformPlan::losses as they become known.
using TransformMeasured = std::function<void(std::span<const TransformScales> losses)>;

/// Calibrates the transform coder to a budget:
///  1. Every layer gets its basis from the cost of its errors at the attention's output, and codes with a mean of 2
///     bits per value; books are fitted to them.
///  2. Keys and values of each layer are coded alone on kTransformMeasured documents. The resulting KL divergence,
///     relative to the estimate, scales the costs.
///  3. Bases are computed again with these costs, and one allocation gives every coefficient of every layer its
///     bits. Books are fitted to them, and thresholds select the tokens with the highest costs.
///     The storage form has one step for all coefficients instead, at which the kept rows take the budget's bytes
///     (storage_fit.h).
/// @param documents  the documents of the moments
/// @param plan  with at least min_transform_bytes()
TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress,
                                         const TransformMeasured& measured = {});

}  // namespace kvs::inline calibrate
