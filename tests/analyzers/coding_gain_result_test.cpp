// SPDX-License-Identifier: Apache-2.0
#include "analyzers/coding_gain_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draw/svg.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// One layer of one head: k_pre saves 1 bit by its mean and 0.5 by a KLT; v saves nothing.
ModelGains one_layer() {
  ModelGains gains;
  gains.shape = {.states = {StateKind::kKPre, StateKind::kKPost, StateKind::kV},
                 .kv_heads = 1,
                 .head_dim = 4,
                 .tokens = 1000,
                 .first_token = 4};
  gains.tokens = 99'600;
  LayerGains layer;
  for (const StateKind state : gains.shape.states) {
    StateGains& of_state = layer.states[state];
    if (state != StateKind::kKPost) {
      of_state.layer.tokens = of_state.layer.tokens_by_channel = {0.01, 0.02, 0.03, 0.04};
      of_state.whole = 0;
    }
    if (state == StateKind::kKPre) {
      of_state.layer.mean = 1;
      of_state.layer.head = 0.5;
    }
    of_state.heads = {of_state.layer};
  }
  layer.states[StateKind::kV].weighted_layer = StepGains{.mean = 0.25, .tokens = {}, .tokens_by_channel = {}};
  layer.states[StateKind::kV].weighted_heads = {*layer.states[StateKind::kV].weighted_layer};
  gains.removed = gains.kept = {layer};
  gains.left_out = {"weights of keys: none"};
  return gains;
}

TEST(CodingGainJson, HoldsEveryStepByLayerAndHead) {
  const Json json = to_json(coding_gain_result(one_layer()));
  EXPECT_EQ(json["tokens"], 99'600);
  EXPECT_EQ(json["block_tokens"], Json({2, 4, 8, 16}));
  const Json& removed = json["mean_removed"];
  EXPECT_EQ(removed["k_pre"]["layers"]["mean"], Json({1.0}));
  EXPECT_EQ(removed["k_pre"]["heads"][0]["head"], Json({0.5}));
  EXPECT_EQ(removed["v"]["layers"]["tokens"], Json::array({{0.01, 0.02, 0.03, 0.04}}));
  EXPECT_EQ(removed["v"]["weighted"]["layers"]["mean"], Json({0.25}));
  EXPECT_FALSE(removed["k_pre"].contains("weighted"));
  EXPECT_FALSE(removed["k_post"]["layers"].contains("layer"));
  EXPECT_EQ(removed["joint"], Json::array({nullptr}));
  EXPECT_EQ(json["left_out"], Json({"weights of keys: none"}));
  EXPECT_EQ(json["families"][0]["verdict"], "can pay");
  EXPECT_EQ(json["families"][0]["saves"]["v"], 0.0);
  EXPECT_NO_THROW(dump_json(json));  // refuses NaN
}

TEST(CodingGainText, SaysWhichFamiliesCanPay) {
  const std::string text = to_text(coding_gain_result(one_layer()));
  EXPECT_THAT(text,
              HasSubstr("Dropping frequencies along tokens cannot pay: without the means a DCT of 16 tokens saves "
                        "0.04 bit of k_pre and 0.04 bit of v."));
  EXPECT_THAT(text, HasSubstr("A transform across channels can pay: a KLT saves 0.50 bit of k_pre"));
  EXPECT_THAT(text, HasSubstr("left out: weights of keys: none"));
  EXPECT_THAT(text, Not(HasSubstr("together")));  // no joint KLT was measured
}

TEST(CodingGainText, WithoutLayersSaysWhyAlone) {
  ModelGains gains;
  gains.left_out = {"everything: found 3 tokens"};
  EXPECT_EQ(to_text(coding_gain_result(gains)), "  left out: everything: found 3 tokens\n");
  EXPECT_FALSE(to_json(coding_gain_result(gains)).contains("mean_removed"));
}

TEST(CodingGainFigure, DrawsKeysAndValues) {
  const std::string svg = draw::svg_file(coding_gain_chart("tiny_model", {7}, coding_gain_result(one_layer())));
  for (const char* words : {"tiny_model", "Keys before RoPE", "Values", "DCT along tokens", ">7<"})
    EXPECT_THAT(svg, HasSubstr(words));
}

}  // namespace
}  // namespace kvs
