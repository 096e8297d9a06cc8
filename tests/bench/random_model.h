// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/dtype.h"

namespace kvs {

/// The sizes of a decoder of the Llama family.
struct ModelGeometry {
  std::string_view name;        // the name for --geometry
  std::string_view hf_class;    // config.json: architectures[0]
  std::string_view model_type;  // config.json
  std::size_t layers, d_model, query_heads, kv_heads, head_dim, d_ff, vocabulary, context;
  double rope_theta, norm_epsilon;
  bool qkv_bias = false, tied_head = false;
};

/// Geometries of real models and tiny ones.
std::span<const ModelGeometry> model_geometries();
/// @throws Error kUsage that lists the known names.
const ModelGeometry& model_geometry(std::string_view name);

struct RandomModelOptions {
  DType dtype = DType::kBF16;  // kF32, kF16 or kBF16
  std::uint64_t seed = 0;
  std::uint64_t shard_bytes = std::uint64_t{4} << 30;  // of tensor data in one file; a tensor is never cut
};

/// Writes config.json and safetensors (one file, or shards with their index) of a model with random weights into
/// `folder`, which is made if need be. Every value depends on the seed, the tensor's name and its index only. A matrix
/// has uniform weights of variance 1/columns, so that activations keep their size; a norm's gains are near 1.
/// Memory: a few MiB whatever the model's size.
/// @return bytes of tensor data
/// @throws Error kConflict if the folder holds a config.json, kEnvironment if a file cannot be written.
std::uint64_t write_random_model(const ModelGeometry& geometry, const std::filesystem::path& folder,
                                 const RandomModelOptions& options);

}  // namespace kvs
