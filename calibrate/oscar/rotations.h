// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "io/json.h"
#include "io/output_tensor.h"

namespace kvs::inline calibrate {

/// The rotations of one layer: for each KV head an orthogonal matrix of keys and one of values. A row x becomes x R.
struct OscarRotations {
  std::size_t layer = 0, kv_heads = 0, head_dim = 0;
  std::vector<float> keys = {}, values = {};  // [kv_head, head_dim, head_dim]
};

/// Returns the tensors of the file next to a config: `layers.N.key_rotation` and `layers.N.value_rotation`.
std::vector<OutputTensor> rotation_tensors(const std::vector<OscarRotations>& layers);
/// Reads these tensors, of the layers with a KV cache. @param path  config checked by check_config()
/// @throws Error kInput naming the tensor, kData for NaN or infinity
std::vector<OscarRotations> read_rotations(const Json& config, const std::filesystem::path& path);

/// Returns the bytes of the rotations. The caches of all sequences share them.
std::size_t shared_bytes(const std::vector<OscarRotations>& layers);

}  // namespace kvs::inline calibrate
