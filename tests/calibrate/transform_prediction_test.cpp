// SPDX-License-Identifier: Apache-2.0
// Rows that are coded after their prediction from the tokens' embeddings.
#include <gtest/gtest.h>

#include <algorithm>

#include "caches/full.h"
#include "calibrate/transform/cache.h"
#include "calibrate/transform/token_inputs.h"
#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs {
namespace {

constexpr std::size_t kInputWidth = 3, kPredictedWidth = 4, kPredictedValues = 2 * kPredictedWidth,
                      kPredictedTokens = 24;

/// One layer of one head whose rows are what the map predicts of their tokens' inputs.
class TransformPrediction : public ::testing::Test {
 protected:
  TransformPrediction() {
    for (std::size_t token = 0; token < kPredictedTokens; ++token)
      for (std::size_t value = 0; value < kPredictedValues; ++value) {
        float sum = 0.25F;
        for (std::size_t n = 0; n < kInputWidth; ++n)
          sum += map_[value * kInputWidth + n] * inputs_[token * kInputWidth + n];
        rows_.push_back(sum);
      }
  }

  TransformLayer layer() const {
    TransformLayer layer{.layer = 0,
                         .mean = std::vector<float>(kPredictedValues, 0.25F),
                         .analysis = std::vector<float>(kPredictedValues * kPredictedValues),
                         .synthesis = {},
                         .bits = std::vector<std::size_t>(kPredictedValues, 1),
                         .weights = std::vector<float>(kPredictedValues, 1),
                         .threshold = 1e9,
                         .outliers = 1,
                         .books = test::random_values(kTrellisBooks, 9),
                         .sinks = 1,
                         .recent = 2,
                         .prediction = map_};
    layer.synthesis = layer.analysis;
    for (std::size_t n = 0; n < kPredictedValues; ++n) {  // the smallest gain is then an error of at most 8e-4
      layer.analysis[n * (kPredictedValues + 1)] = 64;
      layer.synthesis[n * (kPredictedValues + 1)] = 1.0F / 64;
    }
    return layer;
  }
  std::unique_ptr<LayerCache> cache() {
    return make_transform_cache(make_transform_products(*backend_, layer(), {1, kPredictedWidth}), CodedSides::kBoth,
                                std::make_shared<TokenInputs>());
  }
  /// @return what the tokens read with queries of zeros: the mean of all values up to theirs
  std::vector<float> feed(LayerCache& cache, std::size_t first, std::size_t count, bool with_inputs = true) {
    const auto part = [&](std::size_t channel) {
      std::vector<float> values;
      for (std::size_t token = first; token < first + count; ++token)
        values.insert(values.end(), &rows_[token * kPredictedValues + channel],
                      &rows_[token * kPredictedValues + channel] + kPredictedWidth);
      return test::uploaded<4>(*backend_, values, {1, 1, count, kPredictedWidth});
    };
    const auto q = test::uploaded<4>(*backend_, std::vector<float>(count * kPredictedWidth),
                                     {1, 1, count, kPredictedWidth}),
               k = part(0), v = part(kPredictedWidth);
    const auto cosine = test::uploaded<2>(*backend_, std::vector<float>(kPredictedTokens, 1), {kPredictedTokens, 1}),
               sine = test::uploaded<2>(*backend_, std::vector<float>(kPredictedTokens), {kPredictedTokens, 1});
    const std::vector<float> some(inputs_.begin() + static_cast<std::ptrdiff_t>(first * kInputWidth),
                                  inputs_.begin() + static_cast<std::ptrdiff_t>((first + count) * kInputWidth));
    const test::OwnedOperand x(*backend_, some, count, kInputWidth), out(*backend_, count, kPredictedWidth);
    LayerStates states{.backend = *backend_,
                       .layer = 0,
                       .first_position = first,
                       .rope = {cosine.view(), sine.view()},
                       .x = with_inputs ? static_cast<Operand>(x) : Operand{},
                       .q = q.view(),
                       .k = k.view(),
                       .v = v.view()};
    cache.attend(states, out);
    return out.values();
  }

  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 1);
  std::vector<float> map_ = test::random_values(kPredictedValues * kInputWidth, 1),
                     inputs_ = test::random_values(kPredictedTokens * kInputWidth, 2), rows_ = {};
};

TEST_F(TransformPrediction, RowsThatArePredictedLoseNothing) {
  const auto coded = cache();
  const std::vector<float> read = feed(*coded, 0, kPredictedTokens);
  for (std::size_t n = 0; n < kPredictedWidth; ++n) {
    double sum = 0;
    for (std::size_t token = 0; token < kPredictedTokens; ++token)
      sum += static_cast<double>(rows_[token * kPredictedValues + kPredictedWidth + n]);
    EXPECT_NEAR(read[(kPredictedTokens - 1) * kPredictedWidth + n], sum / kPredictedTokens, 1e-3);  // waiting: f16
  }
}

TEST_F(TransformPrediction, HoldsTheSameAtOnceAndTokenByToken) {
  const auto whole = cache(), single = cache();
  for (float& value : rows_) value += 0.3F * value * value;  // no longer linear
  (void)feed(*whole, 0, kPredictedTokens - 1);
  for (std::size_t token = 0; token + 1 < kPredictedTokens; ++token) (void)feed(*single, token, 1);
  EXPECT_EQ(whole->bytes().stored, single->bytes().stored);
  EXPECT_EQ(feed(*whole, kPredictedTokens - 1, 1), feed(*single, kPredictedTokens - 1, 1));
}

TEST_F(TransformPrediction, StoresNothingOfTheInputs) {
  const auto coded = cache();
  (void)feed(*coded, 0, kPredictedTokens);
  constexpr std::size_t kFull = 2 * kPredictedValues, kCode = 2 + 1;  // f16; a gain and eight bits
  constexpr std::size_t kCoded = (kPredictedTokens - 1 - 2) / 2 * 2;
  EXPECT_EQ(coded->bytes().stored, (kPredictedTokens - kCoded) * kFull + kCoded * kCode);
}

TEST_F(TransformPrediction, NeedsTheInputsOfEveryToken) {
  const auto coded = cache();
  EXPECT_THROW((void)feed(*coded, 0, 4, false), Error);
}

}  // namespace
}  // namespace kvs
