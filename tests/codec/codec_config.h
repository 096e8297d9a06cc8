// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/transform/config.h"
#include "io/digest.h"
#include "io/safetensors_writer.h"
#include "tests/io/temporary_directory.h"
#include "tests/kernels/support.h"

namespace kvs::test {

inline constexpr TransformShape kCodecShape{.kv_heads = 2, .head_dim = 32};
inline constexpr std::size_t kCodecValues = 2 * kCodecShape.kv_heads * kCodecShape.head_dim, kCodecLayer = 1;

/// Entry (row, column) of Sylvester's orthonormal matrix of `size` rows, which is its own inverse.
inline float sylvester(std::size_t row, std::size_t column, std::size_t size) {
  return (std::popcount(row & column) % 2 == 0 ? 1.0F : -1.0F) / std::sqrt(static_cast<float>(size));
}

/// A layer whose coefficients are twice the values in Sylvester's basis, with 1 to 5 bits.
inline TransformLayer codec_layer(TransformRows rows, double threshold = 1e9, double outliers = 0.1) {
  const bool heads = rows == TransformRows::kHead;
  const std::size_t side = heads ? kCodecShape.head_dim : kCodecValues, bases = heads ? kCodecShape.kv_heads : 1;
  TransformLayer layer{.layer = kCodecLayer,
                       .rows = rows,
                       .mean = std::vector<float>(kCodecValues, 0.25F),
                       .analysis = {},
                       .synthesis = {},
                       .bits = std::vector<std::size_t>(kCodecValues),
                       .weights = std::vector<float>(kCodecValues, 1),
                       .threshold = heads ? 0 : threshold,
                       .outliers = heads ? 0 : outliers,
                       .books = random_values(kTrellisBooks, 9),
                       .sinks = 3,
                       .recent = 0};
  for (std::size_t n = 0; n < bases * side * side; ++n) {
    const float entry = sylvester(n / side % side, n % side, side);
    layer.analysis.push_back(2 * entry);
    layer.synthesis.push_back(entry / 2);
  }
  for (std::size_t n = 0; n < kCodecValues; ++n) layer.bits[n] = 1 + n % side % 5;
  for (float& entry : layer.books) entry *= 3;
  if (heads) layer.deviations.assign(kCodecValues / 2, 0.5F);
  return layer;
}

/// Writes NAME.json and NAME.safetensors: a config of one layer for a model of three.
inline std::filesystem::path write_codec_config(const TemporaryDirectory& folder, const TransformLayer& layer,
                                                const std::string& name = "t") {
  write_safetensors(folder / (name + ".safetensors"), transform_tensors({layer}, {kCodecShape}), {});
  const TransformConfig config{.layers = {layer.layer},
                               .rows = layer.rows,
                               .sinks = layer.sinks,
                               .recent = layer.recent,
                               .code_bytes = {code_bytes(layer, kCodecShape)},
                               .thresholds = {layer.threshold},
                               .outliers = layer.outliers,
                               .window = 1000,
                               .bytes = 100000,
                               .scales = {{1, 1}}};
  ModelConfig model;
  model.name = model.architecture = "llama";
  model.layer.assign(3, {.attention = {.query_heads = kCodecShape.kv_heads,
                                       .kv_heads = kCodecShape.kv_heads,
                                       .head_dim = kCodecShape.head_dim},
                         .feed_forward = {}});
  model.d_model = 16;
  model.ropes = {{.theta = 1e4, .rotary_dim = kCodecShape.head_dim}};
  const std::vector<ConfigFile> files{{name + ".safetensors", sha256_of_file(folder / (name + ".safetensors"))}};
  return folder.write(name + ".json",
                      dump_json(make_config("transform", model, std::string(64, 'a'), transform_parameters(config),
                                            transform_calibration(config),
                                            {"kvcalibrate transform", "1", {}, 1, 16, 16, 0}, Json::object(), files)));
}

}  // namespace kvs::test
