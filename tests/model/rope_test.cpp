// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "model/rope_json.h"
#include "model/rope_table.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

RopeAngles angles_of(const ModelSource& source, std::size_t tokens) {
  return rope_angles(source.config().rope(0), tokens);
}

TEST(Rope, FrequenciesEqualTransformers) {
  const test::Golden golden = test::read_golden();
  for (const char* name : {"tiny_llama_gqa", "tiny_llama_mha", "tiny_llama.gguf"}) {
    const std::vector<double> found = angles_of(*ModelSource::open(test::golden_path(name)), 20).frequencies;
    const auto expected = golden.models[name]["rope_frequencies"].get<std::vector<double>>();
    ASSERT_EQ(found.size(), expected.size());
    // One unit in the last place of f32: powf may be rounded either way.
    for (std::size_t c = 0; c < found.size(); ++c) EXPECT_NEAR(found[c], expected[c], 1.2e-7 * expected[c]) << name;
  }
}

/// tests/golden/rope_frequencies.json (make_rope_golden.py).
TEST(Rope, EveryTypeEqualsTransformersAtEveryLength) {
  const std::filesystem::path path = test::golden_path("rope_frequencies.json");
  const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
  const RopeScalingContext context{.chunks = golden["head_dim"].get<std::size_t>() / 2,
                                   .context = golden["max_position_embeddings"].get<double>()};
  ASSERT_EQ(golden["cases"].size(), 10U);
  for (const auto& [name, entry] : golden["cases"].items()) {
    RopeParameters rope{.theta = golden["rope_theta"].get<double>(), .rotary_dim = 2 * context.chunks};
    rope.scaling = parse_rope_scaling(JsonCursor(entry["rope_parameters"], name), context);
    for (const auto& [tokens, expected] : entry["lengths"].items()) {
      const RopeAngles found = rope_angles(rope, std::stoul(tokens));
      const auto frequencies = expected["frequencies"].get<std::vector<double>>();
      ASSERT_EQ(found.frequencies.size(), frequencies.size());
      EXPECT_NEAR(found.factor, expected["factor"].get<double>(), 1e-15) << name;
      // Two units in the last place of f32: powf and its argument may each be rounded either way.
      for (std::size_t c = 0; c < frequencies.size(); ++c) {
        EXPECT_NEAR(found.frequencies[c], frequencies[c], 2.4e-7 * frequencies[c]) << name << " " << tokens << " " << c;
      }
    }
  }
}

TEST(Rope, JsonKeepsEveryKindToTheBit) {
  using Type = RopeScaling::Type;
  const std::vector<RopeParameters> ropes{{1e6,
                                           4,
                                           {.type = Type::kYarn,
                                            .factor = 3,
                                            .original_context = 100,
                                            .beta_fast = 9,
                                            .beta_slow = 0.3,
                                            .truncate = false,
                                            .attention_factor = 1.1}},
                                          {1e4, 4, {}},
                                          {1e4, 4, {.type = Type::kLinear, .factor = 7}},
                                          {1e4, 4, {.type = Type::kDynamic, .factor = 7, .original_context = 11}},
                                          {1e4,
                                           4,
                                           {.type = Type::kLlama3,
                                            .factor = 7,
                                            .low_frequency_factor = 0.7,
                                            .high_frequency_factor = 2,
                                            .original_context = 11}},
                                          {1e4, 4, {.type = Type::kFactors, .factors = {1.1F, 0.3F}}},
                                          {1e4,
                                           4,
                                           {.type = Type::kLongRope,
                                            .original_context = 11,
                                            .attention_factor = 1.3,
                                            .factors = {1, 0.3F},
                                            .long_factors = {0.1F, 2}}}};
  const Json json = parse_json(dump_json(ropes_json(ropes), -1), "ropes");
  EXPECT_EQ(ropes_from_json(JsonCursor(json, "ropes")), ropes);
}

TEST(Rope, LengthMattersOnlyBeyondTheOriginalContext) {
  const RopeScaling dynamic{.type = RopeScaling::Type::kDynamic, .factor = 2, .original_context = 64};
  const RopeParameters rope{.theta = 10000, .rotary_dim = 8, .scaling = dynamic};
  EXPECT_EQ(rope_angles(rope, 64), rope_angles({.theta = 10000, .rotary_dim = 8}, 64));
  EXPECT_NE(rope_angles(rope, 65), rope_angles(rope, 64));
  EXPECT_EQ(rope_length_class(rope, 1), rope_length_class(rope, 64));
  EXPECT_NE(rope_length_class(rope, 65), rope_length_class(rope, 66));
}

TEST(Rope, LinearScalingDividesEachFrequency) {
  const std::vector<double> plain = rope_angles({.theta = 10000, .rotary_dim = 8}, 1).frequencies;
  const RopeScaling linear{.type = RopeScaling::Type::kLinear, .factor = 4};
  const std::vector<double> scaled = rope_angles({10000, 8, linear}, 1).frequencies;
  for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(scaled[c], plain[c] / 4);
  EXPECT_EQ(plain[0], 1);
  EXPECT_NEAR(plain[1], 0.1, 1e-8);  // 10000^(-2/8)
}

TEST(Rope, TableHoldsCosineAndSineOfTheRoundedAngle) {
  const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  const RopeAngles angles{{1, static_cast<float>(0.1)}, 1};
  const RopeMemory memory = make_rope_memory(*backend, angles, 2001);
  const std::vector<float> cosine = download(*backend, memory.table().cosine);
  const std::vector<float> sine = download(*backend, memory.table().sine);
  ASSERT_EQ(cosine.size(), 2001U * 2U);
  EXPECT_EQ(cosine[0], 1);
  EXPECT_EQ(sine[1], 0);
  const float angle = 2000.0F * 0.1F;
  EXPECT_EQ(cosine[2000 * 2 + 1], static_cast<float>(std::cos(static_cast<double>(angle))));
  EXPECT_EQ(sine[2000 * 2], static_cast<float>(std::sin(2000.0)));
}

}  // namespace
}  // namespace kvs
