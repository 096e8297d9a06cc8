#include "compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compare/calibration.h"
#include "model/cache_shape.h"
#include "policy/cache_size.h"
#include "policy/methods.h"
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
      Parameters parameters({{{{"cache_size", size}}, "", ErrorCode::kInternal}}, model.layers);
      return make_cache(*find_cache_method("streaming"), parameters, cache_shape(model));
    });
  return make;
}

std::vector<std::vector<double>> divergences(const std::vector<CellResult>& results) {
  std::vector<std::vector<double>> all;
  all.reserve(results.size());
  for (const CellResult& result : results) all.push_back(result.scores.kl);
  return all;
}

class TimedComparison : public ::testing::Test {
 protected:
  std::vector<CellResult> scored(std::optional<double> seconds, Journal* journal) {
    const ComparisonPlan plan{.seconds = seconds, .prefix = 10};
    RunRecords records(journal);
    return score_cells(*tiny_.decoder, documents_, caches(tiny_.model->config()), plan, records, {});
  }

  TinyModel tiny_;
  std::vector<std::vector<std::int32_t>> documents_ = documents();
  std::filesystem::path path_ = tiny_.folder / "run.journal";
};

TEST_F(TimedComparison, GoesOnAsItWasPlannedWhateverTimeIsLeft) {
  for (const double seconds : {0.002, 0.02, 1000.0}) {
    std::filesystem::remove(path_);
    std::vector<CellResult> first;
    std::size_t kept = 0;
    {
      Journal journal = Journal::create(path_, Json::object());
      first = scored(seconds, &journal);
      kept = Journal::read(path_).records.size();
    }
    Journal journal = Journal::resume(path_, Json::object());
    const std::vector<CellResult> again = scored(1e-9, &journal);
    EXPECT_EQ(divergences(again), divergences(first));
    EXPECT_EQ(Journal::read(path_).records.size(), kept);
    for (std::size_t n = 0; n < first.size(); ++n) EXPECT_EQ(again[n].stopped, first[n].stopped);
  }
}

TEST_F(TimedComparison, HasFewerDocumentsThanWithoutALimit) {
  const auto count = [](const std::vector<CellResult>& results) {
    std::size_t sum = 0;
    for (const CellResult& result : results) sum += result.scores.kl.size();
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

TEST(CalibrationQueue, BeginsNothingThatWouldEndTooLate) {
  RunRecords records(nullptr);
  CalibrationQueue queue(records, 100.0);
  const auto calibrate = [] { return Json{{"gamma", 0.5}}; };
  EXPECT_TRUE(queue.next("a", calibrate, 101).contains("error"));
  EXPECT_EQ(queue.next("b", calibrate, 99).at("gamma"), 0.5);
}

TEST(CompareCalibrated, LayersWithoutAWindowHaveTheirShareOfShorterDocuments) {
  ModelConfig model;
  model.layers = 2;
  EXPECT_EQ(calibration_budget(model, 0.3, 40, 20), 0.3);
  model.windows = {10, 0};
  // Of 40 tokens 50 are held, 10 of them in the window: 30 leave the other layer half. Of 20 that is 20 of 30.
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
  const auto cells =
      compare_calibrated(*tiny.decoder, grid, std::span(texts).first(2), queue, 0, [](std::size_t, std::size_t) {});
  ASSERT_FALSE(cells.empty());
  for (const CompareCell& cell : cells) {
    EXPECT_TRUE(cell.calibrated);
    EXPECT_EQ(cell.method, "lagkv");
    if (!cell.error.empty()) continue;
    const CacheShape shape = cache_shape(tiny.model->config());
    CacheSizes sizes(*find_cache_method("lagkv"), shape, tiny.model->config().layers, grid.tokens);
    EXPECT_LE(static_cast<double>(sizes.total(cell.settings)), 0.75 * static_cast<double>(sizes.full()));
  }
}

}  // namespace
}  // namespace kvs
