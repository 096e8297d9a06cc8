// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/common/cache_size.h"
#include "calibrate/compare/calibration.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "model/cache_shape.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kTokens = 40, kDocuments = 6;

std::vector<std::vector<std::int32_t>> documents() {
  const auto all = TinyModel::tokens(kTokens * kDocuments);
  std::vector<std::vector<std::int32_t>> cut;
  for (std::size_t n = 0; n < kDocuments; ++n)
    cut.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(n * kTokens),
                     all.begin() + static_cast<std::ptrdiff_t>((n + 1) * kTokens));
  return cut;
}

/// Streaming caches of several sizes.
std::vector<std::function<Cache()>> caches(const ModelConfig& model) {
  std::vector<std::function<Cache()>> make;
  for (const int size : {8, 12, 16, 24, 32})
    make.push_back([size, &model] {
      Parameters parameters({{{{"cache_size", size}}, "", ErrorCode::kInternal}}, model.layers());
      return make_cache(*find_method("streaming"), parameters, cache_shape(model));
    });
  return make;
}

std::vector<std::vector<double>> divergences(const std::vector<ConfigurationResult>& results) {
  std::vector<std::vector<double>> all;
  all.reserve(results.size());
  for (const ConfigurationResult& result : results) all.push_back(result.scores.kl);
  return all;
}

class TimedComparison : public ::testing::Test {
 protected:
  std::vector<ConfigurationResult> scored(std::optional<double> seconds, Journal* journal) {
    const ComparisonPlan plan{.seconds = seconds, .prefix = 10};
    RunRecords records(journal);
    return score_configurations(*tiny_.decoder, documents_, caches(tiny_.model->config()), plan, records, {});
  }

  TinyModel tiny_;
  std::vector<std::vector<std::int32_t>> documents_ = documents();
  std::filesystem::path path_ = tiny_.folder / "run.journal";
};

TEST_F(TimedComparison, GoesOnAsItWasPlannedWhateverTimeIsLeft) {
  for (const double seconds : {0.002, 0.02, 1000.0}) {
    std::filesystem::remove(path_);
    std::vector<ConfigurationResult> first;
    std::size_t kept = 0;
    {
      Journal journal = Journal::create(path_, Json::object());
      first = scored(seconds, &journal);
      kept = Journal::read(path_).records.size();
    }
    Journal journal = Journal::resume(path_, Json::object());
    const std::vector<ConfigurationResult> again = scored(1e-9, &journal);
    EXPECT_EQ(divergences(again), divergences(first));
    EXPECT_EQ(Journal::read(path_).records.size(), kept);
    for (std::size_t n = 0; n < first.size(); ++n) EXPECT_EQ(again[n].stopped, first[n].stopped);
  }
}

TEST_F(TimedComparison, AConfigurationThatFailsHasItsErrorAndTheOthersGoOn) {
  auto make = caches(tiny_.model->config());
  make[1] = []() -> Cache { throw Error(ErrorCode::kData, "layer 2", "found infinity"); };
  for (const bool resumed : {false, true}) {
    std::optional<Journal> journal;
    if (resumed)
      journal.emplace(Journal::resume(path_, Json::object()));
    else
      journal.emplace(Journal::create(path_, Json::object()));
    RunRecords records(&*journal);
    const auto results =
        score_configurations(*tiny_.decoder, documents_, make, {.all = true, .prefix = 10}, records, {});
    EXPECT_EQ(results[1].error, "layer 2: found infinity");
    EXPECT_TRUE(results[1].scores.kl.empty());
    EXPECT_EQ(results[0].scores.kl.size(), kDocuments);
    EXPECT_EQ(results[0].sum.parts.size(), kDocuments);
    EXPECT_EQ(results[0].sum.parts.front().size(), kComparedParts);
  }
}

TEST_F(TimedComparison, PartsHaveTheDocumentsLosses) {
  const auto results = scored(std::nullopt, nullptr);
  const Evaluation& sum = results[0].sum;
  double nll = 0, kl = 0;  // 29 scored tokens in eight parts: three of 3 tokens and five of 4
  for (std::size_t n = 0; n < kComparedParts; ++n) {
    const double tokens = static_cast<double>((n + 1) * 29 / 8 - n * 29 / 8);
    nll += tokens * sum.parts[0][n].nll;
    kl += tokens * sum.parts[0][n].kl;
  }
  EXPECT_NEAR(nll, sum.sum.per_document[0], 1e-9);
  EXPECT_NEAR(kl / 29, results[0].scores.kl[0], 1e-12);
}

TEST_F(TimedComparison, HasFewerDocumentsThanWithoutALimit) {
  const auto count = [](const std::vector<ConfigurationResult>& results) {
    std::size_t sum = 0;
    for (const ConfigurationResult& result : results) sum += result.scores.kl.size();
    return sum;
  };
  EXPECT_LE(count(scored(1e-9, nullptr)), 1U);
  EXPECT_GT(count(scored(std::nullopt, nullptr)), kDocuments);
}

TEST(CalibrationQueue, TellsWhatWasFoundBeforeAndRefusesAfterItsTime) {
  const TinyModel tiny;
  const std::filesystem::path path = tiny.folder / "queue.journal";
  int calls = 0;
  const auto calibrate = [&] {
    ++calls;
    return Json{{"gamma", 0.5}};
  };
  const auto fail = []() -> Json { throw Error(ErrorCode::kUsage, "lagkv", "needs more"); };
  {
    Journal journal = Journal::create(path, Json::object());
    RunRecords records(&journal);
    CalibrationQueue queue(records, 0.0);
    EXPECT_EQ(queue.next("a", calibrate, 0).at("gamma"), 0.5);
    EXPECT_THAT(queue.next("b", calibrate, 0).at("error").get<std::string>(), HasSubstr("no time was left"));
    EXPECT_EQ(calls, 1);
  }
  Journal journal = Journal::resume(path, Json::object());
  RunRecords records(&journal);
  CalibrationQueue queue(records, std::nullopt);
  EXPECT_EQ(queue.next("a", calibrate, 0).at("gamma"), 0.5);
  EXPECT_TRUE(queue.next("b", calibrate, 0).contains("error"));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(queue.next("c", fail, 0).at("error").get<std::string>(), HasSubstr("needs more"));
}

TEST(CalibrationQueue, FailsOfOneSettingAreItsErrors) {
  RunRecords records(nullptr);
  CalibrationQueue queue(records, std::nullopt);
  const auto overflow = []() -> Json { throw Error(ErrorCode::kData, "measured loss", "found inf"); };
  EXPECT_THAT(queue.next("a", overflow, 0).at("error").get<std::string>(), HasSubstr("found inf"));
}

TEST(CalibrationQueue, EndsWhatTakesFarLongerThanExpected) {
  RunRecords records(nullptr);
  CalibrationQueue queue(records, 0.01);
  const auto endless = [&]() -> Json {
    for (;;) queue.check_time();
  };
  EXPECT_EQ(queue.next("a", endless, 0.005).at("error"), kNoTimeToCalibrate);
  EXPECT_EQ(queue.next("b", endless, 0.005).at("error"), kNoTimeToCalibrate);  // does not begin
}

/// Ten seconds a document.
double ten_each(std::size_t documents) { return 10 * static_cast<double>(documents); }

TEST(CalibrationQueue, SharesTheTimeAmongThoseThatWait) {
  RunRecords records(nullptr);
  CalibrationQueue queue(records, 600.0);
  EXPECT_EQ(queue.documents("a", 666, 3, ten_each), 20U);
  EXPECT_EQ(queue.documents("a", 12, 3, ten_each), 12U);
  EXPECT_EQ(queue.documents("a", 666, 60, ten_each), kMinCalibrated);  // 10 s are one document: the least
  EXPECT_EQ(queue.documents("a", 3, 60, ten_each), 3U);
  CalibrationQueue unlimited(records, std::nullopt);
  EXPECT_EQ(unlimited.documents("a", 666, 3, ten_each), 666U);
}

TEST(CalibrationQueue, KeepsHowManyDocumentsWereTaken) {
  const TinyModel tiny;
  const std::filesystem::path path = tiny.folder / "queue.journal";
  {
    Journal journal = Journal::create(path, Json::object());
    RunRecords records(&journal);
    EXPECT_EQ(CalibrationQueue(records, 600.0).documents("a", 666, 3, ten_each), 20U);
  }
  Journal journal = Journal::resume(path, Json::object());
  RunRecords records(&journal);
  EXPECT_EQ(CalibrationQueue(records, 1.0).documents("a", 666, 3, ten_each), 20U);
  RunRecords again(&journal);
  EXPECT_THROW((void)CalibrationQueue(again, 1.0).documents("b", 666, 3, ten_each), Error);  // another method's
}

TEST(CalibrationQueue, BeginsNothingThatWouldEndTooLate) {
  RunRecords records(nullptr);
  CalibrationQueue queue(records, 100.0);
  const auto calibrate = [] { return Json{{"gamma", 0.5}}; };
  EXPECT_TRUE(queue.next("a", calibrate, 101).contains("error"));
  EXPECT_EQ(queue.next("b", calibrate, 99).at("gamma"), 0.5);
}

TEST(CompareCalibrated, LayersWithoutAWindowHaveTheirShareOfShorterDocuments) {
  ModelConfig model;
  model.layer.assign(2, {.attention = {.query_heads = 1, .kv_heads = 1, .head_dim = 2}, .feed_forward = {}});
  EXPECT_EQ(calibration_budget(model, 0.3, 40, 20), 0.3);
  model.layer[0].attention.window = 10;
  // 50 of 40 tokens are held, 10 of them in the window: 30 leave the other layer half. For 20 tokens that is 20 of 30.
  EXPECT_DOUBLE_EQ(calibration_budget(model, 0.6, 40, 20), 2.0 / 3);
  EXPECT_LT(calibration_budget(model, 0.1, 40, 20), 1.0 / 3);  // less than the window alone
}

TEST(CompareCalibrated, SettingsAreSolvedForTheDocumentsThatAreScored) {
  TinyModel tiny;
  const auto texts = documents();
  const CompareGrid grid{
      .methods = {"lagkv", "streaming"}, .composed = {"q8_0"}, .budgets = {0.75}, .tokens = 160, .prefix = 120};
  RunRecords records(nullptr);
  CalibrationQueue queue(records, std::nullopt);
  const auto configurations = compare_calibrated(*tiny.decoder, grid, "lagkv", {std::span(texts).first(2), {}}, queue,
                                                 0, [](std::size_t, std::size_t) {});
  ASSERT_FALSE(configurations.empty());
  for (const Configuration& one : configurations) {
    EXPECT_TRUE(one.calibrated);
    EXPECT_EQ(one.calibration_documents, 2U);
    EXPECT_EQ(one.method, "lagkv");
    if (!one.error.empty()) continue;
    const CacheShape shape = cache_shape(tiny.model->config());
    CacheSizes sizes(*find_method("lagkv"), shape, grid.tokens);
    EXPECT_LE(static_cast<double>(sizes.total(one.settings)), 0.75 * static_cast<double>(sizes.full()));
  }
}

}  // namespace
}  // namespace kvs
