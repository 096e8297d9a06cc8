// SPDX-License-Identifier: Apache-2.0
#include "model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/model/golden_model.h"

namespace kvs::test {
namespace {

std::vector<float> floats(const Json& values) { return values.get<std::vector<float>>(); }

void expect_close(std::span<const float> found, std::span<const float> expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << "at " << i;
}

std::vector<std::int32_t> next_tokens(std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(-1);
  return targets;
}

/// Logits and NLL as Transformers computes them in f32 (golden/make_tiny_llama.py).
class DecoderGolden : public testing::TestWithParam<const char*> {};

TEST_P(DecoderGolden, EqualsTransformers) {
  const Golden golden = read_golden();
  TinyModel tiny(GetParam());
  ResidualStream hidden = tiny.decoder->embed(golden.tokens);
  tiny.decoder->advance(hidden, tiny.layers());
  // Logits are about 10 in size; sums of 32 terms through two layers round at a few 1e-6.
  expect_close(tiny.decoder->logits(hidden, golden.rows), floats(golden.models[GetParam()]["logits"]), 5e-5);
  expect_close(document_nll(*tiny.decoder, golden.tokens), floats(golden.models[GetParam()]["nll"]), 5e-5);
}

TEST_P(DecoderGolden, Bf16StaysNear) {
  const Golden golden = read_golden();
  TinyModel tiny(GetParam(), DType::kBF16);
  const std::vector<float> found = document_nll(*tiny.decoder, golden.tokens);
  const std::vector<float> expected = floats(golden.models[GetParam()]["nll"]);
  // bf16 keeps 8 bits: logits of about 10 are uncertain by 10 / 256 per product, a few products deep.
  expect_close(found, expected, 0.35);
  EXPECT_NE(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Tiny, DecoderGolden, testing::Values("tiny_llama_gqa", "tiny_llama_mha", "tiny_llama.gguf"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::ranges::replace(text, '.', '_');
                           return text;
                         });

TEST(Decoder, StoppedAndResumedAtAnyLayerIsBitIdentical) {
  const Golden golden = read_golden();
  TinyModel tiny;
  ResidualStream whole = tiny.decoder->embed(golden.tokens);
  tiny.decoder->advance(whole, tiny.layers());
  for (std::size_t stop = 0; stop <= tiny.layers(); ++stop) {
    ResidualStream parts = tiny.decoder->embed(golden.tokens);
    tiny.decoder->advance(parts, stop);
    ResidualStream resumed = tiny.decoder->repeat(parts, 1);
    tiny.decoder->advance(resumed, tiny.layers());
    EXPECT_EQ(tiny.residual(resumed), tiny.residual(whole)) << "stopped at " << stop;
  }
}

TEST(Decoder, RepeatedMembersEqualTheSingleOne) {
  const Golden golden = read_golden();
  TinyModel tiny;
  ResidualStream single = tiny.decoder->embed(golden.tokens);
  tiny.decoder->advance(single, 1);
  ResidualStream batch = tiny.decoder->repeat(single, 3);
  tiny.decoder->advance(single, tiny.layers());
  tiny.decoder->advance(batch, tiny.layers());
  const std::vector<std::int32_t> targets = next_tokens(golden.tokens);
  const std::vector<float> one = tiny.decoder->nll(single, targets), three = tiny.decoder->nll(batch, targets);
  ASSERT_EQ(three.size(), 3 * one.size());
  for (std::size_t member = 0; member < 3; ++member) {
    expect_close(std::span(three).subspan(member * one.size(), one.size()), one, 1e-5);
  }
}

/// Copies every state to the host and back, `gain` times as large in one layer.
class RewritingHook final : public StateHook {
 public:
  explicit RewritingHook(float gain = 1) : gain_(gain) {}
  void before_rope(LayerStates& states) override { rewrite_all(states); }
  void after_rope(LayerStates& states) override { rewrite_all(states); }

 private:
  void rewrite_all(LayerStates& states) const {
    for (const BackendView<float, 4>& view : {states.q, states.k, states.v}) {
      std::vector<float> values = download(states.backend, view);
      for (float& value : values) value *= gain_;
      states.backend.upload(view.data(), values.data(), values.size() * sizeof(float));
    }
  }
  float gain_;
};

TEST(Decoder, HookThatWritesTheSameStatesChangesNothing) {
  const Golden golden = read_golden();
  TinyModel tiny;
  const std::vector<float> plain = document_nll(*tiny.decoder, golden.tokens);
  RewritingHook same, twice(2);
  EXPECT_EQ(document_nll(*tiny.decoder, golden.tokens, &same), plain);
  EXPECT_NE(document_nll(*tiny.decoder, golden.tokens, &twice), plain);
}

TEST(Decoder, SkipsNegativeTargets) {
  const Golden golden = read_golden();
  TinyModel tiny;
  ResidualStream hidden = tiny.decoder->embed(golden.tokens);
  tiny.decoder->advance(hidden, tiny.layers());
  std::vector<std::int32_t> targets = next_tokens(golden.tokens);
  const std::vector<float> all = tiny.decoder->nll(hidden, targets);
  std::fill(targets.begin(), targets.begin() + 10, -1);
  targets[15] = -1;
  const std::vector<float> some = tiny.decoder->nll(hidden, targets);
  for (std::size_t t = 0; t < all.size(); ++t) {
    if (targets[t] < 0) {
      EXPECT_EQ(some[t], 0);
    } else {
      EXPECT_NEAR(some[t], all[t], 1e-5);
    }
  }
}

TEST(Decoder, RefusesATokenOutsideTheVocabulary) {
  TinyModel tiny;
  const std::vector<std::int32_t> tokens{3, 64};
  try {
    tiny.decoder->embed(tokens);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("found id 64"));
  }
}

/// Makes values infinite in one layer.
class InfinityHook final : public StateHook {
 public:
  void after_rope(LayerStates& states) override {
    if (states.layer != 0) return;
    const std::vector<float> values(states.v.size(), std::numeric_limits<float>::infinity());
    states.backend.upload(states.v.data(), values.data(), values.size() * sizeof(float));
  }
};

/// Like a hook that refuses the results of such values.
class RefusingHook final : public StateHook {
 public:
  void before_rope(LayerStates& states) override {
    const std::vector<float> keys = download(states.backend, states.k);
    if (!std::ranges::all_of(keys, [](float value) { return std::isfinite(value); }))
      throw Error(ErrorCode::kData, "a capture", "found a state that is not finite");
  }
  void after_rope(LayerStates& states) override { first_.after_rope(states); }

 private:
  InfinityHook first_;
};

TEST(Decoder, NamesTheFirstLayerWhoseActivationsOverflow) {
  const Golden golden = read_golden();
  TinyModel tiny;
  InfinityHook infinity;
  RefusingHook refusing;
  for (StateHook* hook : std::array<StateHook*, 2>{&infinity, &refusing}) {
    try {
      document_nll(*tiny.decoder, golden.tokens, hook);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      EXPECT_THAT(error.what(), testing::HasSubstr("layer 0"));
    }
  }
}

TEST(Decoder, NamesTheOverflowingLayerOfABatch) {
  const Golden golden = read_golden();
  TinyModel tiny;
  InfinityHook hook;
  ResidualStream batch = tiny.decoder->repeat(tiny.decoder->embed(golden.tokens), 3);
  try {
    tiny.decoder->advance(batch, tiny.layers(), &hook);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("layer 0"));
  }
}

}  // namespace
}  // namespace kvs::test
