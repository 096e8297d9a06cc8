// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace kvs {

/// The sizes of a decoder of the Qwen3-MoE family.
struct ExpertsGeometry {
  std::string_view name;
  std::size_t layers, d_model, query_heads, kv_heads, head_dim, experts, chosen, d_ff, vocabulary, context;
  float rope_theta, norm_epsilon;
};

/// Geometries of real models with experts, with fewer layers.
std::span<const ExpertsGeometry> experts_geometries();

/// Writes a GGUF model of random weights: matrices in Q4_K with variance 1/columns, gains of norms 1, routers in f32.
/// Every value depends on the seed, the tensor's name and its index only. The file has no tokenizer.
/// Memory: a few MiB.
/// @return bytes of tensor data
/// @throws Error kConflict if the file exists, kEnvironment if it cannot be written.
std::uint64_t write_random_gguf(const ExpertsGeometry& geometry, const std::filesystem::path& file, std::uint64_t seed);

}  // namespace kvs
