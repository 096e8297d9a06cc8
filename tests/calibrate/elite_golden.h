// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/json.h"
#include "states/state_source.h"

namespace kvs::golden {

/// The states of golden/make_elite_golden.py: KV head 1 of layer 14 and its three query heads, on real text.
constexpr std::size_t kTokens = 512, kHeadDim = 64, kGroup = 3;

inline std::vector<float> read_f32(const std::string& name, std::size_t size) {
  std::ifstream file(std::string(KVS_GOLDEN_DIR) + "/" + name, std::ios::binary);
  std::vector<float> values(size);
  if (!file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(size * sizeof(float))))
    throw std::runtime_error("golden file " + name + " is missing or short");
  return values;
}
inline std::vector<float> queries() { return read_f32("elite_q_layer14_group1.f32", kGroup * kTokens * kHeadDim); }
inline std::vector<float> keys() { return read_f32("elite_k_layer14_head1.f32", kTokens * kHeadDim); }
inline std::vector<float> values() { return read_f32("spectrum_v_layer14_head1.f32", kTokens * kHeadDim); }

inline Json expected() {
  return parse_json(read_text_file(std::string(KVS_GOLDEN_DIR) + "/opticks512_elite.json", 1 << 20), "golden");
}

/// cos and sin [token, chunk] of θ = 1e5, in f32 step by step as Transformers computes them.
struct Rotation {
  explicit Rotation(std::size_t tokens) {
    for (std::size_t token = 0; token < tokens; ++token) {
      for (std::size_t chunk = 0; chunk < kHeadDim / 2; ++chunk) {
        const auto frequency = static_cast<float>(std::pow(1e5, -2.0 * static_cast<double>(chunk) / kHeadDim));
        const float angle = static_cast<float>(token) * frequency;
        cosine.push_back(std::cos(angle));
        sine.push_back(std::sin(angle));
      }
    }
  }
  RopeTable table() const {
    const std::array shape{cosine.size() / (kHeadDim / 2), kHeadDim / 2};
    return {BackendView<const float, 2>(std::span<const float>(cosine), shape),
            BackendView<const float, 2>(std::span<const float>(sine), shape)};
  }
  std::vector<float> cosine, sine;
};

}  // namespace kvs::golden
