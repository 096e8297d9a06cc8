// SPDX-License-Identifier: Apache-2.0
#include "model/rope_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "model/gguf_keys.h"
#include "model/parsed_config.h"
#include "model/rope_angles.h"
#include "tests/io/fake_gguf.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = RopeScaling::Type;

constexpr RopeDefaults kPartial{.theta_key = "rotary_emb_base", .share_key = "rotary_pct", .share = 0.25};
constexpr RopeDefaults kTwoKinds{.theta = 1e6, .window_theta = 1e4};

/// Three layers, the first two with a window, heads of 8 channels.
ModelConfig small_model() {
  ModelConfig config;
  config.layer.assign(3, {.attention = {.query_heads = 1, .kv_heads = 1, .head_dim = 8}, .feed_forward = {}});
  config.context = 64;
  config.layer[0].attention.window = config.layer[1].attention.window = 16;
  return config;
}

std::vector<std::size_t> rope_kinds(const ModelConfig& config) {
  std::vector<std::size_t> kinds;
  for (const LayerConfig& layer : config.layer) kinds.push_back(layer.attention.rope);
  return kinds;
}

ModelConfig parse_hf(std::string_view json, const RopeDefaults& defaults = {},
                     std::vector<std::string>* notes = nullptr) {
  const Json value = parse_json(json, "c.json");
  ModelConfig config = small_model();
  std::vector<std::string> own;
  parse_hf_rope(JsonCursor(value, "c.json"), defaults, config, notes == nullptr ? own : *notes);
  return config;
}

template <class Act>
std::string complaint(ErrorCode code, Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(HfRope, AFixedAlphaRaisesTheBaseAtEveryLength) {
  constexpr RopeDefaults kAlpha{.fixed_alpha = true};
  const char* const text = R"({"rope_scaling": {"type": "dynamic", "alpha": 50, "factor": 1}, "rope_theta": 100})";
  const RopeParameters rope = parse_hf(text, kAlpha).ropes.front();
  EXPECT_EQ(rope.scaling, RopeScaling{});
  EXPECT_NEAR(rope.theta, 100 * std::pow(50, 8.0 / 6.0), 1e-9);
  EXPECT_EQ(parse_hf(text).ropes.front().scaling.type, Kind::kDynamic);  // other classes pass over alpha
  constexpr std::string_view kNone = R"({"rope_scaling": {"type": "dynamic", "alpha": 0, "factor": 2}})";
  EXPECT_EQ(parse_hf(kNone, kAlpha).ropes.front().scaling.type, Kind::kDynamic);
}

TEST(HfRope, AMissingKeyIsTheArchitecturesDefault) {
  const ModelConfig config = parse_hf("{}");
  ASSERT_EQ(config.ropes.size(), 1U);
  EXPECT_EQ(config.ropes[0], (RopeParameters{.theta = 10000, .rotary_dim = 8}));
  EXPECT_EQ(config.rotary_dim(), 8U);
  EXPECT_EQ(config.layer[2].attention.rope, 0U);
}

TEST(HfRope, APartOfEachHeadTurnsWhereTheArchitectureSaysSo) {
  EXPECT_EQ(parse_hf("{}", kPartial).chunks(), 1U);  // 0.25 of 8 channels
  EXPECT_EQ(parse_hf(R"({"rotary_pct": 0.5, "rotary_emb_base": 500})", kPartial).ropes[0],
            (RopeParameters{.theta = 500, .rotary_dim = 4}));
  const ModelConfig inside = parse_hf(R"({"rope_parameters": {"partial_rotary_factor": 0.75}})", kPartial);
  EXPECT_EQ(inside.rotary_dim(), 6U);
  EXPECT_EQ(parse_hf(R"({"partial_rotary_factor": 1.0})").rotary_dim(), 8U);
}

TEST(HfRope, KeysOfOtherClassesMayOnlyRepeatWhatHolds) {
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, [] { parse_hf(R"({"rotary_emb_base": 500})"); }),
              HasSubstr("/rotary_emb_base: found 500"));
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, [] { parse_hf(R"({"rope_theta": 500})", kPartial); }),
              HasSubstr("/rope_theta: found 500"));
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, [] { parse_hf(R"({"partial_rotary_factor": 0.5})", kPartial); }),
              HasSubstr("/partial_rotary_factor: found 0.5"));
  const RopeParameters same =
      parse_hf(R"({"rope_theta": 500, "rotary_emb_base": 500, "rotary_pct": 0.5, "partial_rotary_factor": 0.5})",
               kPartial)
          .ropes[0];
  EXPECT_EQ(same, (RopeParameters{.theta = 500, .rotary_dim = 4}));
}

TEST(HfRope, TheContextOfDynamicScalingIsTheModels) {
  const char* json = R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2, "max_position_embeddings": 32}})";
  EXPECT_EQ(parse_hf(json).ropes[0].scaling.original_context, 64);
}

TEST(HfRope, AShareThatTransformersWouldPassOverIsRefused) {
  for (const char* json :
       {R"({"partial_rotary_factor": 0.5})", R"({"rope_scaling": {"partial_rotary_factor": 0.5}})"}) {
    EXPECT_THAT(complaint(ErrorCode::kUnsupported, [&] { parse_hf(json); }), HasSubstr("/partial_rotary_factor"));
  }
}

TEST(HfRope, BadSharesAreRefused) {
  for (const char* share : {"0", "-0.5", "1.5", "0.01", "\"0.5\""}) {  // 0.01 of 8 is not a channel
    const std::string json = std::string(R"({"rotary_pct": )") + share + "}";
    EXPECT_THAT(complaint(ErrorCode::kInput, [&] { parse_hf(json, kPartial); }), HasSubstr("/rotary_pct"));
  }
}

TEST(HfRope, OfAnOddShareOneMoreChannelTurns) {
  // Transformers: 1 / base^(arange(0, n, 2) / n), each frequency twice.
  std::vector<std::string> notes;
  const ModelConfig three = parse_hf(R"({"rotary_pct": 0.375})", kPartial, &notes);  // 3 of 8 channels
  EXPECT_EQ(three.rotary_dim(), 4U);
  const std::vector<double> found = rope_angles(three.ropes[0], 1).frequencies;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], 1);
  EXPECT_NEAR(found[1], std::pow(10000.0, -2.0 / 3), 1e-6 * found[1]);  // f32
  EXPECT_THAT(notes, ElementsAre(HasSubstr("3 rotated channels")));

  const ModelConfig seven =
      parse_hf(R"({"rotary_pct": 0.875, "rope_scaling": {"rope_type": "linear", "factor": 4}})", kPartial);
  EXPECT_EQ(seven.rotary_dim(), 8U);
  const std::vector<double> scaled = rope_angles(seven.ropes[0], 1).frequencies;
  for (std::size_t c = 0; c < 4; ++c) {
    const double expected = std::pow(10000.0, -2.0 * static_cast<double>(c) / 7) / 4;
    EXPECT_NEAR(scaled[c], expected, 1e-6 * expected) << c;
  }
  EXPECT_EQ(parse_hf(R"({"rotary_pct": 0.125})", kPartial).rotary_dim(), 2U);
}

TEST(HfRope, AnOddShareIsRefusedWhereScalingDependsOnTheWidth) {
  for (const char* scaling :
       {R"({"rope_type": "dynamic", "factor": 2})", R"({"rope_type": "yarn", "factor": 2})",
        R"({"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [2, 2], "factor": 2})",
        R"({"type": "longrope", "short_factor": [1], "long_factor": [2], "factor": 2})"}) {
    const std::string json = std::string(R"({"rotary_pct": 0.375, "rope_scaling": )") + scaling + "}";
    EXPECT_THAT(complaint(ErrorCode::kUnsupported, [&] { parse_hf(json, kPartial); }),
                HasSubstr("3 rotated channels, an odd number"));
  }
}

TEST(HfRope, LayersWithAWindowHaveTheirOwnRopeInBothSpellings) {
  const RopeScaling linear{.type = Kind::kLinear, .factor = 8};
  const RopeParameters full{.theta = 2e6, .rotary_dim = 8, .scaling = linear}, local{.theta = 500, .rotary_dim = 8};
  for (const char* json :
       {R"({"rope_theta": 2e6, "rope_local_base_freq": 500, "rope_scaling": {"rope_type": "linear", "factor": 8}})",
        R"({"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 2e6},
                                "sliding_attention": {"rope_type": "default", "rope_theta": 500}}})"}) {
    const ModelConfig config = parse_hf(json, kTwoKinds);
    EXPECT_THAT(config.ropes, ElementsAre(full, local));
    EXPECT_THAT(rope_kinds(config), ElementsAre(1, 1, 0));
  }
  const ModelConfig silent = parse_hf("{}", kTwoKinds);
  EXPECT_EQ(silent.rope(0).theta, 1e4);
  EXPECT_EQ(silent.rope(2).theta, 1e6);
}

TEST(HfRope, WhatItCannotHonourIsRefusedByName) {
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, [] { parse_hf(R"({"rope_scaling": {"type": "mrope"}})"); }),
              HasSubstr("mrope"));
  EXPECT_THAT(complaint(ErrorCode::kUnsupported,
                        [] { parse_hf(R"({"rope_scaling": {"type": "factors", "factors": [1, 1, 1, 1]}})"); }),
              HasSubstr("found RoPE scaling \"factors\""));
  EXPECT_THAT(complaint(ErrorCode::kUnsupported,
                        [] { parse_hf(R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})"); }),
              HasSubstr("full_attention"));
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, [] { parse_hf(R"({"rope_parameters": {"factor": 2}})", kTwoKinds); }),
              HasSubstr("/rope_parameters"));
}

TEST(HfRope, WhatTransformersPassesOverOfTwoKindsIsRefused) {
  for (const char* json : {R"({"rope_scaling": {"type": "linear", "factor": 8}})",
                           R"({"rope_scaling": {"full_attention": {"rope_type": "linear", "factor": 8}}})",
                           R"({"rope_scaling": {"rope_type": "linear", "factor": 8},
            "rope_parameters": {"full_attention": {"rope_type": "default"}}})"}) {
    EXPECT_THAT(complaint(ErrorCode::kUnsupported, [&] { parse_hf(json, kTwoKinds); }), HasSubstr("/rope_scaling"));
  }
  EXPECT_THAT(complaint(ErrorCode::kUnsupported,
                        [] {
                          parse_hf(R"({"rope_parameters": {"full_attention": {
                            "rope_type": "yarn", "factor": 4, "truncate": false}}})",
                                   kTwoKinds);
                        }),
              HasSubstr("/rope_parameters/full_attention/truncate"));
  const ModelConfig said = parse_hf(R"({"rope_scaling": {"type": "default", "rope_theta": 500}})", kTwoKinds);
  EXPECT_EQ(said.rope(2).theta, 500);
  EXPECT_EQ(said.rope(0).theta, 1e4);
}

TEST(HfRope, AnEmptyScalingDoesNotHideTheOtherObject) {
  const RopeParameters rope =
      parse_hf(R"({"rope_scaling": {}, "rope_parameters": {"rope_theta": 500, "rope_type": "linear", "factor": 2}})")
          .ropes[0];
  EXPECT_EQ(rope.theta, 500);
  EXPECT_EQ(rope.scaling, (RopeScaling{.type = Kind::kLinear, .factor = 2}));
}

TEST(HfRope, TwoBasesMustAgree) {
  EXPECT_EQ(parse_hf(R"({"rope_theta": 500, "rope_parameters": {"rope_theta": 500}})").ropes[0].theta, 500);
  EXPECT_THAT(complaint(ErrorCode::kInput,
                        [] { parse_hf(R"({"rope_theta": 10000, "rope_parameters": {"rope_theta": 500}})"); }),
              HasSubstr("/rope_parameters/rope_theta: found 500, expected 10000, the value of /rope_theta"));
}

TEST(HfRope, AFactorWithoutATypeIsRefused) {
  for (const char* scaling : {R"({"factor": 2})", R"({"rope_theta": 500, "long_factor": [1, 1, 1, 1]})"}) {
    EXPECT_THAT(complaint(ErrorCode::kInput, [&] { parse_hf(R"({"rope_scaling": )" + std::string(scaling) + "}"); }),
                HasSubstr("/rope_scaling: found an object"));
  }
}

TEST(HfRope, BadScalingsNameTheirPlace) {
  const auto place = [](const std::string& scaling) {
    return complaint(ErrorCode::kInput, [&] { parse_hf(R"({"rope_scaling": {"type": )" + scaling + "}}"); });
  };
  EXPECT_THAT(place(R"("linear", "factor": 0)"), HasSubstr("/rope_scaling/factor"));
  EXPECT_THAT(place(R"("linear")"), HasSubstr("/rope_scaling/factor"));
  EXPECT_THAT(place(R"("yarn", "factor": 4, "beta_fast": 0.5)"), HasSubstr("/rope_scaling/beta_fast"));
  EXPECT_THAT(place(R"("yarn", "factor": 4, "attention_factor": -1)"), HasSubstr("/rope_scaling/attention_factor"));
  EXPECT_THAT(place(R"("yarn", "factor": 4, "truncate": 1)"), HasSubstr("/rope_scaling/truncate"));
  EXPECT_THAT(place(R"("longrope", "short_factor": [1, 1, 1, 1])"), HasSubstr("/rope_scaling/long_factor"));
  EXPECT_THAT(place(R"("longrope", "short_factor": [1, 1, 1], "long_factor": [1, 1, 1, 1])"),
              HasSubstr("/rope_scaling/short_factor"));
  EXPECT_THAT(place(R"("longrope", "short_factor": [1, 1, 0, 1], "long_factor": [1, 1, 1, 1])"),
              HasSubstr("/rope_scaling/short_factor/2"));
  EXPECT_THAT(place("5"), HasSubstr("/rope_scaling/type"));
}

TEST(CheckRope, ParametersThatYieldNoNumbersTogetherAreRefused) {
  constexpr const char* kYarn = R"({"rope_theta": %, "rope_scaling":
    {"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096}})";
  const auto with_theta = [](std::string json, const std::string& theta) {
    return parse_hf(json.replace(json.find('%'), 1, theta));
  };
  EXPECT_NO_THROW(check_rope(with_theta(kYarn, "2"), "c.json"));
  // Both bounds of the ramp are a positive number over ln 1 = 0.
  EXPECT_THAT(complaint(ErrorCode::kInput, [&] { check_rope(with_theta(kYarn, "1"), "c.json"); }),
              AllOf(HasSubstr("c.json: found RoPE parameters (theta 1.0"), HasSubstr("expected finite")));
}

class GgufRope : public ::testing::Test {
 protected:
  ModelConfig parse(const RopeDefaults& defaults = {}) {
    ModelConfig config = small_model();
    parse_gguf_rope(file_, GgufKeys(file_, "llama"), defaults, config);
    return config;
  }
  std::string refusal(ErrorCode code) {
    return complaint(code, [&] { parse(); });
  }
  void set(const std::string& key, GgufValue value) { file_.values.insert_or_assign("llama.rope." + key, value); }
  FakeGguf file_;
};

TEST_F(GgufRope, ReadsBasesAndHowManyChannelsTurn) {
  EXPECT_EQ(parse().ropes[0], (RopeParameters{.theta = 10000, .rotary_dim = 8}));
  set("freq_base", 5e5);
  set("dimension_count", std::uint64_t{4});
  EXPECT_EQ(parse().ropes[0], (RopeParameters{.theta = 5e5, .rotary_dim = 4}));
  set("freq_base_swa", 300.0);
  const ModelConfig two = parse(kTwoKinds);
  EXPECT_EQ(two.rope(0), (RopeParameters{.theta = 300, .rotary_dim = 4}));
  EXPECT_EQ(two.rope(2).theta, 5e5);
}

TEST_F(GgufRope, OneBaseIsNeverReadAsTwo) {
  set("freq_base", 5e5);
  set("freq_base_swa", 300.0);
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("llama.rope.freq_base_swa: found 300"));
  set("freq_base_swa", 5e5);
  set("dimension_count_swa", std::uint64_t{4});
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("llama.rope.dimension_count_swa: found 4"));
  set("dimension_count_swa", std::uint64_t{8});
  EXPECT_EQ(parse().ropes.size(), 1U);
}

TEST_F(GgufRope, OllamasSpellingsHoldUnlessTheyContradict) {
  set("global.freq_base", 5e5);
  set("local.freq_base", 300.0);
  const ModelConfig gemma3 = parse(kTwoKinds);
  EXPECT_EQ(gemma3.rope(0).theta, 300);
  EXPECT_EQ(gemma3.rope(2).theta, 5e5);
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("llama.rope.local.freq_base: found 300"));
  set("freq_base", 7e5);
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, [&] { parse(kTwoKinds); }),
              HasSubstr("llama.rope.global.freq_base: found 500000"));
  file_ = {};
  set("freq_base_local", 300.0);
  EXPECT_EQ(parse(kTwoKinds).rope(0).theta, 300);
  set("freq_base_swa", 400.0);
  EXPECT_THAT(complaint(ErrorCode::kUnsupported, [&] { parse(kTwoKinds); }),
              HasSubstr("llama.rope.freq_base_local: found 300"));
}

TEST_F(GgufRope, LinearScalingIsOfTheLayersWithoutAWindow) {
  set("scaling.type", std::string_view("linear"));
  set("scaling.factor", 8.0);
  const ModelConfig two = parse(kTwoKinds);
  EXPECT_EQ(two.rope(2).scaling, (RopeScaling{.type = Kind::kLinear, .factor = 8}));
  EXPECT_EQ(two.rope(0).scaling, RopeScaling{});
}

TEST_F(GgufRope, YarnHasLlamaCppsAttentionFactor) {
  set("scaling.type", std::string_view("yarn"));
  set("scaling.factor", 4.0);
  set("scaling.original_context_length", std::uint64_t{16});
  set("scaling.attn_factor", 0.5);
  const RopeScaling found = parse().ropes[0].scaling;
  EXPECT_EQ(found.type, Kind::kYarn);
  EXPECT_EQ(found.original_context, 16);
  EXPECT_DOUBLE_EQ(found.attention_factor, 0.5 * (0.1 * std::log(4.0) + 1));
  set("scaling.beta_fast", 64.0);  // Ollama's spelling
  EXPECT_EQ(parse().ropes[0].scaling.beta_fast, 64);
  set("scaling.yarn_log_multiplier", 0.1);
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("llama.rope.scaling.yarn_log_multiplier"));
  set("scaling.extrapolation_factor", 0.5);
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("llama.rope.scaling.extrapolation_factor: found 0.5"));
}

TEST_F(GgufRope, FactorsByLengthAreLongRope) {
  file_.add_tensor("rope_factors_short.weight", {1, 1, 1, 2});
  file_.add_tensor("rope_factors_long.weight", {1, 2, 3, 4});
  set("scaling.original_context_length", std::uint64_t{16});
  set("scaling.attn_factor", 1.25);
  EXPECT_EQ(parse().ropes[0].scaling, (RopeScaling{.type = Kind::kLongRope,
                                                   .original_context = 16,
                                                   .attention_factor = 1.25,
                                                   .factors = {1, 1, 1, 2},
                                                   .long_factors = {1, 2, 3, 4}}));
}

TEST_F(GgufRope, BadFactorsAreRefused) {
  file_.add_tensor("rope_factors_long.weight", {1, 2, 3, 4});
  EXPECT_THAT(refusal(ErrorCode::kInput), HasSubstr("rope_factors_short"));
  file_.add_tensor("rope_factors_short.weight", {1, 1, 1});
  EXPECT_THAT(refusal(ErrorCode::kInput), HasSubstr("expected 4 floats"));
  FakeGguf other;
  other.add_tensor("rope_freqs.weight", {1, 0, 1, 1});
  ModelConfig config = small_model();
  EXPECT_THAT(complaint(ErrorCode::kInput, [&] { parse_gguf_rope(other, GgufKeys(other, "llama"), {}, config); }),
              HasSubstr("rope_freqs.weight"));
}

TEST_F(GgufRope, LongRopeWithoutItsTensorsIsRefused) {
  set("scaling.type", std::string_view("longrope"));
  EXPECT_THAT(refusal(ErrorCode::kInput), HasSubstr("llama.rope.scaling.type: found longrope without"));
}

TEST_F(GgufRope, WhatItCannotHonourIsRefusedByName) {
  set("scaling.type", std::string_view("linear"));
  set("scaling.factor", 2.0);
  file_.add_tensor("rope_freqs.weight", {1, 1, 1, 1});
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("cannot be combined with tensors of factors"));
  set("scaling.type", std::string_view("ntk"));
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("\"ntk\""));
}

}  // namespace
}  // namespace kvs
