// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/cache_choice.h"
#include "calibrate/oscar/cache.h"
#include "calibrate/oscar/config_file.h"
#include "calibrate/oscar/target_sums.h"
#include "eval/evaluation.h"
#include "model/cache_shape.h"
#include "states/live_source.h"
#include "tests/calibrate/layer_harness.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

Backend& oscar_backend() {
  static const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32, 1);
  return *backend;
}

/// Returns values from −1 to 1 without a pattern.
std::vector<float> mixed_values(std::size_t count, float seed) {
  std::vector<float> values(count);
  for (std::size_t n = 0; n < count; ++n) values[n] = std::sin(seed + 12.9898F * static_cast<float>(n));
  return values;
}

OscarRotations unit_rotations(std::size_t kv_heads, std::size_t head_dim) {
  OscarRotations one{.layer = 0, .kv_heads = kv_heads, .head_dim = head_dim};
  for (std::size_t n = 0; n < kv_heads * head_dim * head_dim; ++n)
    one.keys.push_back(n % (head_dim * head_dim) % (head_dim + 1) == 0 ? 1.0F : 0.0F);
  one.values = one.keys;
  return one;
}

/// Returns rotations of covariances without a pattern.
OscarRotations mixed_rotations(std::size_t kv_heads, std::size_t head_dim) {
  OscarRotations one{.layer = 0, .kv_heads = kv_heads, .head_dim = head_dim};
  const auto ops = make_calibration_ops(oscar_backend());
  for (std::size_t head = 0; head < 2 * kv_heads; ++head) {
    const std::vector<float> x = mixed_values(head_dim * head_dim, static_cast<float>(head));
    std::vector<double> covariance(head_dim * head_dim);
    for (std::size_t n = 0; n < covariance.size(); ++n)
      for (std::size_t row = 0; row < head_dim; ++row)
        covariance[n] += double{x[row * head_dim + n / head_dim]} * double{x[row * head_dim + n % head_dim]};
    const std::vector<float> rotation = oscar_rotation(*ops, {covariance, {head_dim, head_dim}});
    std::vector<float>& side = head < kv_heads ? one.keys : one.values;
    side.insert(side.end(), rotation.begin(), rotation.end());
  }
  return one;
}

TEST(OscarRotation, MixesEigenvectorsByTheHadamardMatrixInBitReversedOrder) {
  // The eigenvectors are e1, e3, e0, e2 in descending order. Column j of U H is the sum of ± these vectors; columns 1
  // and 2 change places.
  const std::vector<double> covariance{2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0, 5};
  const auto ops = make_calibration_ops(oscar_backend());
  const std::vector<float> rotation = oscar_rotation(*ops, {covariance, {4, 4}}), e0{.5, -.5, .5, -.5},
                           e1{.5, .5, .5, .5}, e2{.5, -.5, -.5, .5}, e3{.5, .5, -.5, -.5};
  std::vector<float> expected;
  for (const auto* const row : {&e0, &e1, &e2, &e3}) expected.insert(expected.end(), row->begin(), row->end());
  EXPECT_THAT(rotation, Pointwise(FloatNear(1e-6F), expected));
}

TEST(OscarRotation, IsOrthogonal) {
  for (const std::size_t size : {32U, 12U, 80U}) {
    const OscarRotations all = mixed_rotations(1, size);
    for (const std::vector<float>* const rotation : {&all.keys, &all.values})
      for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < size; ++b) {
          double product = 0;
          for (std::size_t n = 0; n < size; ++n)
            product += double{(*rotation)[n * size + a]} * double{(*rotation)[n * size + b]};
          EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6);
        }
  }
}

TEST(OscarOptions, GroupsDivideAHead) {
  EXPECT_EQ(OscarOptions{}.values_of_group(64), 64U);
  EXPECT_EQ(OscarOptions{}.values_of_group(256), 128U);
  EXPECT_EQ(OscarOptions{}.values_of_group(192), 64U);
  EXPECT_EQ(OscarOptions{.group = 32}.values_of_group(80), 16U);
}

TEST(OscarClip, LimitsARowToAQuantileOfItsMagnitudes) {
  const auto clipped = [](std::vector<float> row, double quantile) {
    clip_row(row, quantile);
    return row;
  };
  EXPECT_THAT(clipped({-8, 1, 2, 4}, 1), ElementsAre(-8, 1, 2, 4));
  EXPECT_THAT(clipped({-8, 1, 2, 4}, 0.96), ElementsAre(-8, 1, 2, 4));  // ⌊3.84⌋ is the last
  EXPECT_THAT(clipped({-8, 1, 2, 4}, 0.5), ElementsAre(-4, 1, 2, 4));
  EXPECT_THAT(clipped({-8, 1, 2, 4}, 0), ElementsAre(-1, 1, 1, 1));
}

TEST(OscarCache, CodesTheTokenThatLeavesTheLastOnes) {
  // One sink and one recent token. Value rows (0, 1, 2, 6) are coded with the minimum 0 and the step 2; 1 is a tie,
  // which goes to the even code 0. With the clip to the third magnitude 6 becomes 2, and the step 2/3.
  for (const bool clips : {false, true}) {
    const OscarOptions options{.sinks = 1, .recent = 1, .clip_k = 1, .clip_v = clips ? 0.5 : 1};
    const auto cache = make_oscar_cache(options, 4, make_oscar_products(oscar_backend(), unit_rotations(1, 4)));
    test::LayerHarness harness(*cache, 1, 4);
    const std::vector<float> k(4 * 4), v{0, 1, 2, 6, 0, 1, 2, 6, 0, 0, 0, 0, 0, 0, 0, 0};
    (void)harness.feed(k, v, 4, 0);
    EXPECT_THAT(harness.feed(k, v, 4, 1), Pointwise(FloatNear(1e-6F), {0.F, 1.F, 2.F, 6.F}));
    (void)harness.feed(k, v, 4, 2);                       // token 1 is coded after it
    const float step = 2.0F / 3, one = clips ? 1.5F : 1;  // 1 / step: a tie of codes 1 and 2
    const std::vector<float> read = harness.feed(k, v, 4, 3);
    EXPECT_NEAR(read[0], 0, 1e-6);
    EXPECT_NEAR(read[1], clips ? (1 + std::nearbyint(one) * step) / 4 : 0.25, 1e-3);
    EXPECT_NEAR(read[2], (2.0 + 2.0) / 4, 1e-3);
    EXPECT_NEAR(read[3], clips ? (6.0 + 2.0) / 4 : 3, 1e-3);
  }
}

TEST(OscarCache, CountsItsBytes) {
  // Of 9 tokens 2 + 3 are in 16 bits: 2 sides, 2 heads, 16 values. A coded row has 4 bytes of codes and, for each group
  // of 8, 4 bytes of scales.
  const auto cache = make_oscar_cache({.sinks = 2, .recent = 3, .group = 8}, 16,
                                      make_oscar_products(oscar_backend(), unit_rotations(2, 16)));
  test::LayerHarness harness(*cache, 2, 16);
  harness.feed_all(std::vector<float>(2 * 9 * 16), std::vector<float>(2 * 9 * 16));
  EXPECT_EQ(cache->bytes().stored, 2U * 2 * (5 * 16 * 2 + 4 * (4 + 2 * 4)));
  EXPECT_EQ(cache->peak().stored, cache->bytes().stored);
}

TEST(OscarCache, AtOnceAndTokenByTokenAreTheSameBits) {
  constexpr std::size_t kTokens = 12, kHeads = 2, kDim = 16;
  const std::vector<float> k = mixed_values(kHeads * kTokens * kDim, 1), v = mixed_values(kHeads * kTokens * kDim, 2);
  const auto products = make_oscar_products(oscar_backend(), mixed_rotations(kHeads, kDim));
  const auto read = [&](std::size_t count) {
    const auto cache = make_oscar_cache({.sinks = 2, .recent = 3}, kDim, products);
    test::LayerHarness harness(*cache, kHeads, kDim, 0, 0.3F);
    std::vector<float> all;
    for (std::size_t token = 0; token < kTokens; token += count) {
      const std::vector<float> rows = harness.feed(k, v, kTokens, token, 2, count);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  };
  const std::vector<float> one_by_one = read(1);
  EXPECT_EQ(read(kTokens), one_by_one);
  EXPECT_EQ(read(4), one_by_one);
}

TEST(OscarCache, CodesAWholePrefixAtItsEnd) {
  constexpr std::size_t kTokens = 9, kDim = 8;
  const std::vector<float> k = mixed_values(kTokens * kDim, 1), v = mixed_values(kTokens * kDim, 2);
  const auto products = make_oscar_products(oscar_backend(), mixed_rotations(1, kDim));
  const OscarOptions options{.sinks = 1, .recent = 2};
  const auto whole = make_oscar_cache(options, kDim, products), stepwise = make_oscar_cache(options, kDim, products);
  test::LayerHarness at_once(*whole, 1, kDim), in_steps(*stepwise, 1, kDim);
  whole->begin_prefix(7);
  (void)at_once.feed(k, v, kTokens, 0, 2, 7);
  EXPECT_EQ(whole->bytes().stored, 2 * 7 * kDim * 2);
  whole->end_prefix(at_once.backend());
  EXPECT_EQ(whole->compressions(), 1U);
  (void)in_steps.feed(k, v, kTokens, 0, 2, 7);
  EXPECT_EQ(whole->bytes().stored, stepwise->bytes().stored);
  for (const std::size_t token : {7U, 8U})
    EXPECT_THAT(at_once.feed(k, v, kTokens, token, 2),
                Pointwise(FloatNear(1e-6F), in_steps.feed(k, v, kTokens, token, 2)));
}

TEST(OscarCache, NeedsItsRotations) {
  const auto cache = make_oscar_cache({}, 4, nullptr);
  test::LayerHarness harness(*cache, 1, 4);
  test::expect_error(ErrorCode::kInternal, "a cache without rotations", [&] {
    (void)harness.feed({1, 2, 3, 4}, {1, 2, 3, 4}, 1, 0);
  });
}

/// Golden values of a model with QK-norm and grouped queries (golden/make_oscar.py).
class OscarGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    const Json model = read("parity/qwen3.json");
    golden_ = read("oscar.json");
    tokens_ = read("parity/tokens.json").get<std::vector<std::int32_t>>();
    test::write_formula_model(folder_ / "model", model["config"], model["tensors"]);
    backend_ = make_backend("cpu", DType::kF32, 2);
    source_ = ModelSource::open(folder_ / "model");
    model_ = std::make_unique<Model>(*source_, *backend_);
    decoder_ = std::make_unique<Decoder>(*model_);
  }
  static Json read(const std::string& name) {
    const std::filesystem::path path = test::golden_path(name);
    return parse_json(read_text_file(path, 1 << 20), path.string());
  }
  OscarSums sums() const {
    const auto first = tokens_.begin();
    LiveSource states(*decoder_, {{first, first + golden_["calibrated"].get<std::ptrdiff_t>()}});
    OscarSums sums(*source_);
    sums.add(states, 0);
    return sums;
  }
  std::vector<OscarRotations> rotations() const { return sums().rotations(*make_calibration_ops(*backend_)); }
  /// Returns a KV head's part of the layer that the golden values are of.
  template <class T>
  std::vector<T> shown(std::span<const T> of_heads, std::size_t size) const {
    const auto part = of_heads.subspan(golden_["shown"][1].get<std::size_t>() * size, size);
    return {part.begin(), part.end()};
  }
  /// The mean NLL with a config of these settings.
  double loss(const Json& settings) const {
    const CacheShape shape = cache_shape(source_->config());
    Parameters parameters({{settings, "", ErrorCode::kUsage}}, shape);
    (void)make_cache(kOscarMethod, parameters, shape);
    const std::filesystem::path path = folder_ / "oscar.json";
    Provenance record;
    record.command = "test";
    record.tool_version = "1";
    record.window = tokens_.size();
    (void)write_oscar_config(rotations(), *source_, parameters.resolved(), record, path, true);
    const CacheChoice choice = cache_of_config(path, *source_);
    const std::function<Cache()> make = cache_maker(choice, *backend_, source_->config(), tokens_.size());
    return evaluate_document(*decoder_, tokens_, {.make = make}).sum.mean();
  }

  test::TemporaryDirectory folder_;
  Json golden_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;
};

TEST_F(OscarGolden, CovariancesAndRotationsEqualThoseOfAnotherProgram) {
  constexpr std::size_t kSquare = 16 * 16, kKvHeads = 2;
  const auto layer = golden_["shown"][0].get<std::size_t>();
  const OscarSums found = sums();
  const std::span<const double> of_layer = found.state()[layer];
  for (const std::size_t side : {0U, 1U}) {
    std::vector<double> expected;
    for (const Json& row : golden_["covariance"][side])
      for (const Json& value : row) expected.push_back(value.get<double>());
    EXPECT_THAT(shown(of_layer.subspan(side * kKvHeads * kSquare), kSquare),
                Pointwise(::testing::DoubleNear(1e-3), expected));
  }
  const OscarRotations one = rotations().at(layer);
  EXPECT_THAT(shown(std::span<const float>(one.keys), kSquare),
              Pointwise(FloatNear(1e-4F), golden_["keys"].get<std::vector<float>>()));
  EXPECT_THAT(shown(std::span<const float>(one.values), kSquare),
              Pointwise(FloatNear(1e-4F), golden_["values"].get<std::vector<float>>()));
}

TEST_F(OscarGolden, ACodedRowEqualsThatOfAnotherProgram) {
  OscarRotations one{.layer = 0, .kv_heads = 1, .head_dim = 16};
  one.keys = one.values = golden_["keys"].get<std::vector<float>>();
  for (const Json& coded : golden_["rows"]) {
    const double quantile = coded["quantile"];
    const auto cache =
        make_oscar_cache({.sinks = 0, .recent = 1, .group = coded["group"], .clip_k = quantile, .clip_v = quantile}, 16,
                         make_oscar_products(*backend_, one));
    test::LayerHarness harness(*cache, 1, 16);
    std::vector<float> v = golden_["row"];
    v.resize(3 * 16);
    const std::vector<float> k(3 * 16);
    (void)harness.feed(k, v, 3, 0);
    (void)harness.feed(k, v, 3, 1);
    const std::vector<float> read = harness.feed(k, v, 3, 2);  // a third of the decoded row, rotated back
    for (std::size_t column = 0; column < 16; ++column) {
      float value = 0;
      for (std::size_t n = 0; n < 16; ++n) value += 3 * read[n] * one.values[n * 16 + column];
      EXPECT_NEAR(value, coded["decoded"][column].get<float>(), 1e-5) << column;
    }
  }
}

TEST_F(OscarGolden, LossesEqualThoseOfAnotherProgram) {
  // A value next to the border of two codes may be rounded to the other one.
  for (const Json& one : golden_["cases"])
    EXPECT_NEAR(loss(one["settings"]), one["nll"].get<double>(), 2e-4) << one["settings"];
}

}  // namespace
}  // namespace kvs
