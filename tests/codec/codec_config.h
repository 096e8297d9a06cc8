// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/transform/config.h"
#include "calibrate/transform/entropy_model.h"
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

/// Channels of the embeddings that rows of a group are predicted from.
inline constexpr std::size_t kCodecChannels = 5;

/// Layers 0 and 1, whose rows share Sylvester's basis and are coded after a prediction. Coefficients are twice the
/// values, with 1 to 5 bits; in the storage form they are the first 200 of 256, with 8 to 1/2 steps for a value of 1.
inline TransformLayer codec_group(TransformForm form, double threshold = 1e9) {
  const std::size_t values = 2 * kCodecValues, count = form == TransformForm::kStorage ? 200 : values;
  TransformLayer layer = codec_layer(TransformRows::kLayer, threshold);
  layer.layer = 0;
  layer.others = {kCodecLayer};
  layer.mean.assign(values, 0.25F);
  layer.weights.assign(count, 1);
  layer.recent = 16;
  layer.prediction = random_values(values * kCodecChannels, 5);
  for (float& entry : layer.prediction) entry = f16_to_f32(f32_to_f16(entry / 4));
  layer.bits.clear();
  if (form == TransformForm::kStorage) {
    layer.books.clear();
    layer.outliers = layer.threshold = 0;
    layer.entropy = std::make_shared<const EntropyModel>(laplacian_model());
  }
  std::vector<float> steps;
  for (std::size_t n = 0; n < count; ++n) {
    steps.push_back(form == TransformForm::kStorage ? std::exp2(3.0F - static_cast<float>(n * 5 / count)) : 2);
    if (form == TransformForm::kStorage)
      layer.scales.push_back(static_cast<std::uint8_t>(scale_class(0.58 * static_cast<double>(steps.back()))));
    else
      layer.bits.push_back(1 + n % 5);
  }
  layer.analysis.clear();
  layer.synthesis.clear();
  for (std::size_t n = 0; n < count; ++n)
    for (std::size_t value = 0; value < values; ++value)
      layer.analysis.push_back(steps[n] * sylvester(n, value, values));
  for (std::size_t value = 0; value < values; ++value)
    for (std::size_t n = 0; n < count; ++n) layer.synthesis.push_back(sylvester(n, value, values) / steps[n]);
  return layer;
}

/// The model of write_codec_config(): three layers.
inline ModelConfig codec_model() {
  ModelConfig model;
  model.name = model.architecture = "llama";
  model.layer.assign(3, {.attention = {.query_heads = kCodecShape.kv_heads,
                                       .kv_heads = kCodecShape.kv_heads,
                                       .head_dim = kCodecShape.head_dim},
                         .feed_forward = {}});
  model.d_model = 16;
  model.ropes = {{.theta = 1e4, .rotary_dim = kCodecShape.head_dim}};
  return model;
}

/// Writes NAME.json and NAME.safetensors: a config of one layer, or of one group, for a model of three layers.
inline std::filesystem::path write_codec_config(const TemporaryDirectory& folder, const TransformLayer& layer,
                                                const std::string& name = "t") {
  write_safetensors(folder / (name + ".safetensors"), transform_tensors({layer}, {kCodecShape}), {});
  TransformConfig config{.layers = {layer.layer},
                         .rows = layer.rows,
                         .form = layer.form(),
                         .sinks = layer.sinks,
                         .recent = layer.recent,
                         .code_bytes = {layer.entropy == nullptr ? code_bytes(layer, kCodecShape) : 99},
                         .thresholds = {layer.threshold},
                         .outliers = layer.outliers,
                         .window = 1000,
                         .bytes = 100000,
                         .scales = {},
                         .predicts = !layer.prediction.empty(),
                         .groups = {layer.layers()}};
  config.layers.insert(config.layers.end(), layer.others.begin(), layer.others.end());
  config.code_bytes.resize(config.layers.size());
  config.thresholds.resize(config.layers.size());
  config.scales.assign(config.layers.size(), {1, 1});
  const std::vector<ConfigFile> files{{name + ".safetensors", sha256_of_file(folder / (name + ".safetensors"))}};
  return folder.write(name + ".json",
                      dump_json(make_config("transform", codec_model(), std::string(64, 'a'),
                                            transform_parameters(config), transform_calibration(config),
                                            {"kvcalibrate transform", "1", {}, 1, 16, 16, 0}, Json::object(), files)));
}

}  // namespace kvs::test
