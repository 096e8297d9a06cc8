// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/transform/basis.h"
#include "calibrate/transform/cache.h"
#include "io/json.h"
#include "io/output_tensor.h"

namespace kvs::inline calibrate {

/// Maximum number of sinks, of waiting tokens, and of tokens of the document that a budget is for.
inline constexpr std::size_t kMaxTransformTokens = std::size_t{1} << 30;

/// The content of a transform config, without its model and its provenance. Lists are by index in `layers`.
struct TransformConfig {
  std::vector<std::size_t> layers;  // ascending; other layers keep everything
  TransformRows rows = TransformRows::kLayer;
  TransformForm form = TransformForm::kRandomAccess;
  std::size_t sinks = 0;   // number of first tokens kept in full
  std::size_t recent = 0;  // TransformLayer::recent
  /// Bytes of a token's codes; those of a group with its first layer, else 0. The storage form: mean of the
  /// calibration.
  std::vector<std::size_t> code_bytes;
  std::vector<double> thresholds;        // TransformLayer::threshold; likewise
  double outliers = 0;                   // TransformLayer::outliers
  std::size_t window = 0, bytes = 0;     // the budget: stored bytes of a document of `window` tokens
  std::vector<TransformScales> scales;   // measured costs of errors
  bool predicts = false;                 // TransformLayer::prediction
  std::vector<std::size_t> groups = {};  // number of layers of each group, in order; empty: 1 each
};

/// Return the members `parameters` and `calibration` of the config.
Json transform_parameters(const TransformConfig& config);
Json transform_calibration(const TransformConfig& config);

/// Reads a config that check_config has checked; it has groups. @param where  the file, for messages
/// @throws Error kInput
TransformConfig read_transform_config(const Json& config, const std::string& where);

/// Returns the bytes of a token's codes in a layer or in a group, without gains.
std::size_t code_bytes(const TransformLayer& layer, const TransformShape& shape);

/// Returns the bytes of the bases, means, bits and books. The caches of all sequences share them.
std::size_t shared_bytes(const std::vector<TransformLayer>& layers);

/// Returns the tensors of the file next to the config: `books` and, for each layer, mean, analysis, synthesis, bits and
/// weights, deviations with TransformRows::kHead, and prediction if rows are predicted. Those of a group have its first
/// layer's name. The storage form has the tables of its EntropyModel instead of books, scales instead of bits and
/// weights, and analysis, synthesis and prediction in f16.
/// @param shapes  [layer], by index in `layers`
std::vector<OutputTensor> transform_tensors(const std::vector<TransformLayer>& layers,
                                            const std::vector<TransformShape>& shapes);
/// Reads these tensors. @param path  config checked by read_config();  @throws Error kInput naming the tensor
std::vector<TransformLayer> read_transform_layers(const Json& config, const std::filesystem::path& path);

}  // namespace kvs::inline calibrate
