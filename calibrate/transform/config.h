#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/transform/basis.h"
#include "calibrate/transform/cache.h"
#include "io/json.h"
#include "io/output_tensor.h"

namespace kvs {

/// Sinks, tokens that wait, and those of a document that a budget is for, at most.
inline constexpr std::size_t kMaxTransformTokens = std::size_t{1} << 30;

/// What a transform config says beside its model and its provenance. Lists are by position in `layers`.
struct TransformConfig {
  std::vector<std::size_t> layers;  // ascending; the others keep everything
  TransformRows rows = TransformRows::kLayer;
  std::size_t sinks = 0;                // first tokens that stay in full
  std::size_t recent = 0;               // TransformLayer::recent
  std::vector<std::size_t> code_bytes;  // of a token's codes
  std::vector<double> thresholds;       // TransformLayer::threshold
  double outliers = 0;                  // TransformLayer::outliers
  std::size_t window = 0, bytes = 0;    // the budget: stored bytes of a document of `window` tokens
  std::vector<TransformScales> scales;  // what errors cost, as measured
};

/// The members `parameters` and `calibration` of the config.
Json transform_parameters(const TransformConfig& config);
Json transform_calibration(const TransformConfig& config);

/// Reads them, checked by check_config before.  @param where  the file, for messages;  @throws Error kInput
TransformConfig read_transform_config(const Json& config, const std::string& where);

/// Bytes of a token's codes in a layer, without gains.
std::size_t code_bytes(const TransformLayer& layer, const TransformShape& shape);

/// Bytes of the bases, means, bits and books, which every sequence's cache reads and all share.
std::size_t shared_bytes(const std::vector<TransformLayer>& layers);

/// The tensors of the file beside the config: `books` and, of each layer, mean, analysis, synthesis, bits and weights,
/// and deviations with TransformRows::kHead.
std::vector<OutputTensor> transform_tensors(const std::vector<TransformLayer>& layers, const TransformShape& shape);
/// Reads them. @param path  of the config, which read_config() has checked;  @throws Error kInput naming the tensor
std::vector<TransformLayer> read_transform_layers(const Json& config, const std::filesystem::path& path);

}  // namespace kvs
