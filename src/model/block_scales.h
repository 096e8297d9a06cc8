#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/json.h"
#include "io/tensor_archive.h"

namespace kvs::inline model {

/// Weights in F8_E4M3 with scales, as a Hugging Face folder's quantization_config states them.
struct ScaledWeights {
  std::size_t rows = 0, columns = 0;  // of the values of one scale; 0: one scale for a tensor
};

/// Reads quantization_config; nothing: the weights are not quantised. Says in `notes` what is not computed.
/// @throws Error kUnsupported with the method, kInput with the JSON pointer.
std::optional<ScaledWeights> read_quantization(const JsonCursor& root, std::vector<std::string>& notes);

/// The scales of one stored matrix. A block at the matrix's edge may be cut short.
class BlockScales {
 public:
  /// @throws Error kInput if the shape of `scales` does not fit, kUnsupported if their type is not supported.
  BlockScales(const TensorArchive& archive, const StoredTensor& weight, const StoredTensor& scales,
              const ScaledWeights& scheme);

  /// Multiplies rows [first, first + count) of the weight by their scales in f32, as Transformers does.
  void multiply(std::size_t first, std::size_t count, std::span<float> values) const;

 private:
  StoredTensor scales_;
  std::size_t block_rows_, block_columns_;
};

/// Returns the name of a weight's scales.
std::string scales_name(const std::string& weight);

/// Returns the scales that belong to `weight`, or nothing if `weight` is plain.
/// @param scheme  nothing: the model's weights are not quantised
/// @throws Error like BlockScales; kInput if F8_E4M3 values have no scales, or other values have some; kUnsupported
/// for F8_E4M3 values without quantization_config.
std::optional<BlockScales> find_scales(const TensorArchive& archive, const StoredTensor& weight,
                                       const std::optional<ScaledWeights>& scheme);

}  // namespace kvs::inline model
