// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "model/checkpoints/stored_matrix.h"

namespace kvs::inline model {

/// Which weights of a model are quantised, and how.
class QuantizedWeights {
 public:
  virtual ~QuantizedWeights() = default;

  /// Returns the matrix that the tensor `name` stands for ("model.layers.0.mlp.up_proj.weight"), also if the file holds
  /// it under other names; nullptr if the file holds a plain tensor of that name, or nothing.
  /// @throws Error kInput if parts are missing, or their types, shapes or values do not fit; kUnsupported by name.
  virtual std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const = 0;
};

/// A format of quantised Hugging Face checkpoints: a row of the table in checkpoints.cpp.
struct CheckpointFormat {
  std::string_view method;  // quantization_config: quant_method
  /// Reads quantization_config; nullptr: no weight is quantised. Adds to `notes` what is not computed.
  /// @throws Error kUnsupported by name, kInput with the JSON pointer.
  std::unique_ptr<const QuantizedWeights> (*read)(const JsonCursor& config, std::vector<std::string>& notes);
};

}  // namespace kvs::inline model
