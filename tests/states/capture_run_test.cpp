// SPDX-License-Identifier: Apache-2.0
#include "states/capture_run.h"

#include <gtest/gtest.h>

#include <array>

namespace kvs {
namespace {

TEST(CaptureHeader, KeepsAModelsRopeAndSaysWhatItDidToItsDocuments) {
  using Type = RopeScaling::Type;
  ModelConfig model;
  model.layer.assign(3, {.attention = {.query_heads = 2, .kv_heads = 1, .head_dim = 6}, .feed_forward = {}});
  const RopeScaling dynamic{.type = Type::kDynamic, .factor = 2, .original_context = 16};
  const RopeScaling yarn{.type = Type::kYarn, .factor = 4, .original_context = 16, .attention_factor = 1.25};
  model.ropes = {{.theta = 1e6, .rotary_dim = 4, .scaling = dynamic}, {.theta = 1e4, .rotary_dim = 4, .scaling = yarn}};
  model.layer[1].attention.rope = 1;
  const std::array<std::size_t, 1> layers{1};
  const StateSet states{StateKind::kKPre};
  const CaptureHeader header = capture_header(model, std::string(64, 'a'), layers, states, DType::kF32, 40, 2);

  const ModelConfig again = model_config_of(header);
  EXPECT_EQ(again.ropes, model.ropes);
  ASSERT_EQ(again.layers(), 3U);
  for (std::size_t layer = 0; layer < 3; ++layer)
    EXPECT_EQ(again.layer[layer].attention.rope, model.layer[layer].attention.rope);
  const std::vector<RopeAngles> angles = rope_angles_of(header);
  ASSERT_EQ(angles.size(), 2U);
  EXPECT_EQ(angles[0], rope_angles(model.ropes[0], 40));
  EXPECT_NE(angles[0], rope_angles(model.ropes[0], 16));  // the length of the documents matters
  EXPECT_EQ(angles[1], rope_angles(model.ropes[1], 40));
  EXPECT_EQ(angles[1].factor, 1.25);
}

/// Layer 0: no attention; layer 1: two KV heads of 6; layer 2: one of 8; layer 3 reads the rows of layer 2.
ModelConfig mixed_model() {
  ModelConfig model;
  model.layer.resize(4);
  model.layer[1].attention = {.query_heads = 2, .kv_heads = 2, .head_dim = 6, .rope = 1};
  model.layer[2].attention = {.query_heads = 2, .kv_heads = 1, .head_dim = 8};
  model.layer[3].attention = {.query_heads = 2, .kv_heads = 1, .head_dim = 8, .kv_layer = 2};
  model.ropes = {{.theta = 1e6, .rotary_dim = 8}, {.theta = 1e4, .rotary_dim = 6}};
  return model;
}

TEST(CaptureHeader, KeepsTheSizesOfLayersAndNamesThoseWithoutACache) {
  const ModelConfig model = mixed_model();
  const StateSet states{StateKind::kKPre};
  const CaptureHeader header =
      capture_header(model, std::string(64, 'a'), model.cached_layers(), states, DType::kF32, 40, 2);
  EXPECT_EQ(header.query_heads, LayerSizes(2));
  EXPECT_EQ(header.kv_heads, LayerSizes(std::vector<std::size_t>{0, 2, 1, 0}));
  EXPECT_EQ(header.head_dim, LayerSizes(std::vector<std::size_t>{0, 6, 8, 0}));
  EXPECT_EQ(header.rotary_dim, LayerSizes(std::vector<std::size_t>{8, 6}));
  EXPECT_EQ(header.layers_without_cache, (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(header.layers, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(capture_bytes(header), 2 * ((2 * 6 + 8) * 40 * 4 + 40 * 4 + 39 * 4));
  const ModelConfig again = model_config_of(header);
  EXPECT_EQ(again.cached_layers(), model.cached_layers());
  EXPECT_EQ(again.layer[1].attention.kv_heads, 2U);
  EXPECT_EQ(again.layer[2].attention.head_dim, 8U);
  const std::vector<RopeAngles> angles = rope_angles_of(header);
  EXPECT_EQ(angles.at(0), rope_angles(model.ropes[0], 40));
  EXPECT_EQ(angles.at(1), rope_angles(model.ropes[1], 40));
}

}  // namespace
}  // namespace kvs
