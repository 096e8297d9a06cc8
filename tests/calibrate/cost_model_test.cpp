// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cost/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "calibrate/cost/cost.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "eval/cached_run.h"
#include "tests/eval/tiny_model.h"
#include "tests/model/caches.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

constexpr double kPublished = 3e-4;  // the papers' FLOPs are printed with five digits and a rounded P

Json report_of(const std::string& name, std::vector<std::size_t> tokens, std::vector<std::size_t> lags = {128, 1024}) {
  return to_json(cost_result(known_geometry(name), {.tokens = std::move(tokens), .lags = std::move(lags)}));
}

TEST(CostReport, HasTheBytesOfEveryKnownGeometry) {
  const std::vector<std::pair<std::string, std::size_t>> known{{"llama2-7b", 524288},
                                                               {"llama2-13b", 819200},
                                                               {"llama3-8b", 131072},
                                                               {"qwen2.5-7b", 57344},
                                                               {"smollm2-135m", 23040}};
  EXPECT_EQ(known.size(), known_geometries().size());
  for (const auto& [name, bytes] : known) EXPECT_EQ(report_of(name, {4096}).at("bytes_per_token"), bytes) << name;
  EXPECT_THROW(known_geometry("llama4"), Error);
}

// FreqKV's tables for LLaMA-2-7B: cache 4,096, 4 sinks, γ = 0.5.
TEST(CostReport, HasTheFlopsOfFreqkvsTable) {
  const Json report = report_of("llama2-7b", {4096, 8192, 12288, 16384, 32768});
  EXPECT_EQ(report.at("products_per_token"), 6607077376.0);
  const Json& rows = report.at("freqkv").at("rows");
  const auto expect = [&](const char* column, const std::vector<double>& published) {
    for (std::size_t n = 0; n < published.size(); ++n)
      EXPECT_NEAR(rows.at(n).at(column).get<double>() / published[n], 1, kPublished) << column << " " << n;
  };
  expect("full_tflops", {62.93, 143.46});
  expect("dropping_tflops", {62.93, 125.86, 188.79, 251.72, 503.43});
  expect("freqkv_tflops", {62.93, 125.90, 188.85, 251.81, 503.63});
  const std::vector<double> transforms{0, 0.0386, 0.0644, 0.0901, 0.1931};
  for (std::size_t n = 0; n < transforms.size(); ++n)
    EXPECT_NEAR(rows.at(n).at("transform_tflops").get<double>(), transforms[n], 0.5e-4) << n;
}

TEST(CostReport, HasFreqkvsCompressions) {
  const Json freqkv = report_of("llama2-7b", {4096, 8192, 12288, 16384, 24576, 32768}).at("freqkv");
  EXPECT_EQ(freqkv.at("gammas"), Json({0.25, 0.5, 0.75}));
  std::vector<int> half;
  for (const Json& row : freqkv.at("rows")) half.push_back(row.at("compressions").at(1).get<int>());
  EXPECT_THAT(half, ElementsAre(0, 3, 5, 7, 11, 15));
  EXPECT_EQ(freqkv.at("rows").back().at("compressions"), Json({10, 15, 29}));
}

TEST(CostReport, HasLagkvsLengths) {
  const Json lagkv = report_of("llama2-7b", {16384}).at("lagkv");
  EXPECT_EQ(lagkv.at("ratios"), Json({0.5, 0.25, 0.125}));
  EXPECT_EQ(lagkv.at("rows").at(0).at("held"), Json({8320, 4288, 2272}));
  EXPECT_EQ(lagkv.at("rows").at(1).at("held"), Json({9216, 5632, 3840}));
  EXPECT_EQ(report_of("llama2-7b", {900}, {64}).at("lagkv").at("rows").at(0).at("held").at(1), 324);
}

TEST(CostReport, HasElitekvsFeasiblePairsAndBounds) {
  const Json elitekv = report_of("llama2-7b", {4096}).at("elitekv");
  EXPECT_EQ(elitekv.at("values_per_token_and_layer"), 8192);
  std::vector<std::pair<double, int>> counts;
  for (const Json& row : elitekv.at("rows"))
    counts.emplace_back(row.at("ratio").get<double>(), row.at("count").get<int>());
  EXPECT_THAT(counts, ElementsAre(std::pair(0.5, 19), std::pair(0.34375, 21), std::pair(0.28125, 17),
                                  std::pair(0.25, 15), std::pair(0.21875, 13), std::pair(0.125, 7)));
  EXPECT_EQ(elitekv.at("rows").back().at("pairs"),
            parse_json("[[2,896],[4,768],[6,640],[8,512],[10,384],[12,256],[14,128]]", "pairs"));
  const Json bounds = report_of("smollm2-135m", {4096}).at("elitekv").at("bounds");
  EXPECT_EQ(bounds, parse_json(R"([{"r":8,"d_ckv":212},{"r":12,"d_ckv":202},{"r":16,"d_ckv":192},
                                   {"r":32,"d_ckv":144}])",
                               "bounds"));
}

TEST(CostReport, HasFaedkvsBins) {
  // 768 tokens: N = 708, 355 bins; chunks 0 … 10 of 22 are bins 0 … ⌊11 · 355/22⌋ − 1.
  const Json row = report_of("smollm2-135m", {768}).at("faedkv").at("rows").at(0);
  EXPECT_EQ(row.at("bins"), 355);
  EXPECT_EQ(row.at("kept_bins").at(0), 177);
  EXPECT_DOUBLE_EQ(row.at("bytes_ratio").at(0).get<double>(), (60 + 2 * 177) / 768.0);
}

/// The rows that a cache of the random model holds and the compressions that it made after some tokens.
std::pair<std::size_t, std::size_t> run_cache(TinyModel& tiny, const std::string& method,
                                              const std::vector<std::string>& settings, std::size_t tokens) {
  Cache cache = test::cache_of(tiny.model->config(), method, settings);
  run_cached(*tiny.decoder, cache, TinyModel::tokens(tokens), {}, [](const ResidualStream&, std::size_t) {});
  return {cache.bytes().stored, cache.compressions()};
}

TEST(CostModel, AgreesWithTheCaches) {
  TinyModel tiny;
  const std::size_t token_bytes = CacheBytes::kStoredValue * tiny.model->config().cache_values_per_token();
  for (const std::size_t tokens : {24U, 25U, 60U, 61U}) {
    EXPECT_EQ(run_cache(tiny, "freqkv", {"cache_size=24", "gamma=0.3"}, tokens).second,
              compressions({.cache_size = 24, .gamma = 0.3}, tokens))
        << tokens;
    EXPECT_EQ(run_cache(tiny, "lagkv", {"sinks=3", "lag=8", "ratio=0.4"}, tokens).first,
              token_bytes * lagkv_tokens(tokens, 3, 8, 0.4))
        << tokens;
  }
  const SpectrumSize spectrum{.sinks = 2, .recent = 5, .chunks = 6};
  for (const std::size_t prefix : {40U, 41U})
    EXPECT_EQ(run_cache(tiny, "faedkv",
                        {"prefix=" + std::to_string(prefix), "sinks=2", "recent=5", "chunks=6", "kept=0-2"}, prefix + 1)
                  .first,
              token_bytes * (spectrum.size(prefix, 0.5) + 1))  // and the token after it
        << prefix;
}

}  // namespace
}  // namespace kvs
