// SPDX-License-Identifier: Apache-2.0
#include "eval/ablation_forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "analyzers/chunk_grid.h"
#include "calibrate/faedkv/ablation_result.h"
#include "io/file.h"
#include "io/json.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

constexpr std::size_t kTokens = 40;

class Ablation : public ::testing::Test {
 protected:
  AblationForward forward(const AblationSetup& setup, std::size_t batch_rows = 4096) {
    return {*tiny_.decoder, *ops_, setup, batch_rows};
  }
  /// Row 0 keeps all bins, row 1 drops the lowest third, row 2 the middle third.
  std::vector<double> three_gains(std::size_t bins) const {
    std::vector<double> gains(3 * bins, 1.0);
    for (std::size_t n = 0; n < bins / 3; ++n) gains[bins + n] = gains[2 * bins + bins / 3 + n] = 0;
    return gains;
  }
  TinyModel tiny_;
  std::unique_ptr<SpectralOps> ops_ = tiny_.backend->make_spectral_ops();
  std::vector<std::int32_t> tokens_ = TinyModel::tokens(kTokens);
};

TEST_F(Ablation, KeepingEveryBinChangesNothing) {
  for (const bool continuation : {false, true}) {
    for (const bool before_rope : {false, true}) {
      const AblationSetup setup{continuation, kTokens, 28, 2, 3, Transform::kDft, before_rope};
      auto runs = forward(setup);
      runs.begin(tokens_);
      const std::vector<double> ones(bins_of(setup.transform, setup.filtered()), 1.0);
      const auto sums = runs.variants(1, {ones, {1, ones.size()}});
      // The filter and its inverse differ from the identity by f32 rounding of the states.
      EXPECT_NEAR(sums[0], runs.base(), 1e-4 * static_cast<double>(setup.scored()));
    }
  }
}

TEST_F(Ablation, VariantsDoNotDependOnHowTheyAreBatched) {
  const AblationSetup setup{true, kTokens, 28, 2, 3, Transform::kDct, false};
  const auto gains = three_gains(bins_of(setup.transform, setup.filtered()));
  std::vector<std::vector<double>> results;
  for (const std::size_t rows : {1UL, 24UL, 4096UL}) {  // one member a batch, two, all
    auto runs = forward(setup, rows);
    runs.begin(tokens_);
    results.push_back(runs.variants(0, {gains, {3, gains.size() / 3}}));
  }
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_NEAR(results[1][n], results[0][n], 1e-4);
    EXPECT_NEAR(results[2][n], results[0][n], 1e-4);
  }
  EXPECT_GT(std::abs(results[0][1] - results[0][0]), 1e-3) << "dropping a third of the bins must matter";
}

TEST_F(Ablation, ContinuationScoresOnlyWhatFollowsThePrefix) {
  const AblationSetup setup{true, kTokens, 28, 2, 3, Transform::kDft, false};
  EXPECT_EQ(setup.scored(), kTokens - 28 - 1);
  auto runs = forward(setup);
  runs.begin(tokens_);
  const auto nll = document_nll(*tiny_.decoder, tokens_);
  const double tail = std::accumulate(nll.begin() + 28, nll.end(), 0.0);
  EXPECT_NEAR(runs.base(), tail, 1e-4);
}

TEST_F(Ablation, FilteringOneLayerEqualsItsVariant) {
  for (const bool continuation : {false, true}) {
    const AblationSetup setup{continuation,    kTokens, 28, continuation ? 2UL : 0UL, continuation ? 3UL : 0UL,
                              Transform::kDft, true};
    const auto gains = three_gains(bins_of(setup.transform, setup.filtered()));
    const std::size_t bins = gains.size() / 3, layer = 2;
    auto runs = forward(setup);
    runs.begin(tokens_);
    const double variant = runs.variants(layer, {gains, {3, bins}})[1];
    std::vector<double> twice(gains.begin() + static_cast<std::ptrdiff_t>(bins), gains.end());
    std::copy_n(twice.begin(), bins, twice.begin() + static_cast<std::ptrdiff_t>(bins));  // of keys and of values
    EXPECT_NEAR(runs.filtered(std::span(&layer, 1), {twice, {1, 2, 1, bins}})[0], variant, 1e-4);
  }
}

TEST_F(Ablation, ABatchOfModelsEqualsEachAlone) {
  const std::vector<std::size_t> layers{1, 2, 3};
  for (const bool continuation : {false, true}) {
    const AblationSetup setup{continuation,    kTokens, 28, continuation ? 2UL : 0UL, continuation ? 3UL : 0UL,
                              Transform::kDct, false};
    const std::size_t bins = bins_of(setup.transform, setup.filtered());
    // Four variants: each state and layer keeps a different number of bins.
    std::vector<double> gains;
    for (std::size_t row = 0; row < 4 * 2 * layers.size(); ++row)
      for (std::size_t bin = 0; bin < bins; ++bin) gains.push_back(bin < bins - row % 7 ? 1 : 0);
    const std::size_t size = gains.size() / 4;
    auto runs = forward(setup, 2 * kTokens);
    runs.begin(tokens_);
    const auto batch = runs.filtered(layers, {gains, {4, 2, layers.size(), bins}});
    ASSERT_EQ(batch.size(), 4U);
    for (std::size_t n = 0; n < 4; ++n) {
      const auto own = std::span<const double>(gains).subspan(n * size, size);
      EXPECT_NEAR(runs.filtered(layers, {own, {1, 2, layers.size(), bins}})[0], batch[n], 1e-4) << n;
    }
    EXPECT_GT(std::abs(batch[1] - batch[0]), 1e-3) << "the variants must differ";
  }
}

TEST_F(Ablation, KeysAndValuesAreFilteredByTheirOwnGains) {
  const AblationSetup setup{true, kTokens, 28, 0, 0, Transform::kDct, true};
  const std::size_t bins = bins_of(setup.transform, setup.filtered()), layer = 0;
  std::vector<double> all(bins, 1.0), few(bins, 0.0);
  few[0] = 1;
  auto runs = forward(setup);
  runs.begin(tokens_);
  const auto sum = [&](const std::vector<double>& keys, const std::vector<double>& values) {
    std::vector<double> both = keys;
    both.insert(both.end(), values.begin(), values.end());
    return runs.filtered(std::span(&layer, 1), {both, {1, 2, 1, bins}})[0];
  };
  const double unchanged = sum(all, all), keys = sum(few, all), values = sum(all, few);
  EXPECT_GT(std::abs(keys - unchanged), 1e-3);
  EXPECT_GT(std::abs(values - unchanged), 1e-3);
  EXPECT_GT(std::abs(values - keys), 1e-3);
}

TEST(AblationOfSmolLM2, DeltasEqualPyTorchs) {
  const char* path = std::getenv("KVS_MODEL");
  if (path == nullptr) GTEST_SKIP() << "set KVS_MODEL to the path that scripts/fetch_model.sh prints";
  const Json golden = parse_json(read_text_file(KVS_GOLDEN_DIR "/opticks512_faedkv.json", 1 << 20), "golden");
  const auto tokens = golden.at("tokens").get<std::vector<std::int32_t>>();
  const auto backend = make_backend("cpu", DType::kF32);
  const auto source = ModelSource::open(path);
  const Model model(*source, *backend);
  Decoder decoder(model);
  const auto ops = backend->make_spectral_ops();
  // Layer 0 costs two thirds of the time. The label long has it.
  const char* cases = std::getenv("KVS_CASES");
  const bool all = cases != nullptr && std::string_view(cases) == "all";
  for (const std::string space : {"k_pre", "k_post"}) {
    AblationForward runs(decoder, *ops, {false, 512, 0, 0, 0, Transform::kDft, space == "k_pre"});
    runs.begin(tokens);
    const std::size_t chunks[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto gains = ablation_gains({Transform::kDft, false, 8, 512}, chunks);
    AblationSums sums{511, {}, {{}}};
    const std::vector<std::size_t> layers{0, 14, 29};
    const std::size_t first = all ? 0 : 1;
    for (std::size_t n = first; n < layers.size(); ++n) {
      const auto nll = runs.variants(layers[n], {gains, {8, 257}});
      sums.ablated[0].emplace_back(nll.begin(), nll.end());
    }
    sums.base.push_back(runs.base());
    const AblationResult result = ablation_result(sums);
    EXPECT_NEAR(std::exp(result.nll_base) / golden.at("perplexity").get<double>(), 1, 1e-4);
    for (std::size_t n = first; n < layers.size(); ++n) {
      for (std::size_t chunk = 0; chunk < 8; ++chunk) {
        const double expected = golden.at("delta").at(space).at(n).at(chunk).get<double>();
        EXPECT_NEAR(result.delta[n - first][chunk], expected, 1e-3 * (1 + std::abs(expected)))
            << space << ' ' << n << ' ' << chunk;
      }
    }
  }
}

}  // namespace
}  // namespace kvs
