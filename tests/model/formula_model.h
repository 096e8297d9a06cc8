// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/json.h"
#include "tests/io/safetensors_bytes.h"

namespace kvs::test {

/// The weights of tests/parity/combinations.py: f32 values in (−1, 1) from splitmix64 of FNV-1a of the tensor's name
/// plus the index, its top 24 bits; scaled for matrices, around 1 for norms' gains (around 0 for Gemma 2 and 3, which
/// add the 1; around 0.5 for queries and keys of Gemma 3n and 4, which do not scale scores).
inline std::vector<float> formula_weights(std::string_view name, const std::vector<std::uint64_t>& shape,
                                          std::string_view model_type) {
  std::uint64_t seed = 0xcbf29ce484222325U, count = 1;
  for (const char byte : name) seed = (seed ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3U;
  for (const std::uint64_t extent : shape) count *= extent;
  const bool unscaled = model_type.starts_with("gemma3n") || model_type.starts_with("gemma4");
  const bool gain = name.find("norm") != std::string_view::npos && !name.ends_with("bias") &&
                    (!model_type.starts_with("gemma") || unscaled);
  const auto scale = shape.size() == 2 ? static_cast<float>(2.0 / std::sqrt(static_cast<double>(shape[1]))) : 0.25F;
  const bool half = unscaled && (name.ends_with("q_norm.weight") || name.ends_with("k_norm.weight"));
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    const float value = (static_cast<float>(z >> 40U) * 0x1p-23F - 1.0F) * scale;
    values[i] = shape.size() == 1 && gain ? (half ? 0.5F : 1.0F) * (1.0F + value) : value;
  }
  return values;
}

/// A Hugging Face folder with this config and weights by the formula. tensors: {name: shape}.
inline void write_formula_model(const std::filesystem::path& folder, const Json& config, const Json& tensors) {
  std::vector<NamedTensor> list;
  for (const auto& [name, shape] : tensors.items()) {
    const auto extents = shape.get<std::vector<std::uint64_t>>();
    list.push_back({name, extents, formula_weights(name, extents, config["model_type"].get<std::string>())});
  }
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "config.json", dump_json(config), false);
  write_file_atomically(folder / "model.safetensors", safetensors_bytes(list), false);
}

}  // namespace kvs::test
