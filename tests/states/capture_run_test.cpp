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

}  // namespace
}  // namespace kvs
