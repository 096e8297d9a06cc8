// SPDX-License-Identifier: Apache-2.0
#include "analyzers/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

class RetainedBands : public ::testing::Test {
 protected:
  static RetentionPlan plan(bool continuation, std::vector<double> shares) {
    RetentionPlan plan;
    plan.setup = {continuation, 40, 28, continuation ? 2UL : 0UL, 0, Transform::kDct, true};
    plan.layers = {0, 1, 2, 3};
    plan.shares = std::move(shares);
    return plan;
  }
  Retention run(const RetentionPlan& plan, const std::string& journal = "j") {
    AblationForward forward(*tiny_.decoder, *ops_, plan.setup);
    const auto path = tiny_.folder / journal;
    Journal kept = std::filesystem::exists(path) ? Journal::resume(path, {}) : Journal::create(path, {});
    documents_done_ = 0;
    return retain(forward, plan, documents_, kept, [&](std::size_t) { ++documents_done_; });
  }
  /// The curve of a band, as sums by share.
  static std::vector<double> nll(const Retention& retention, KeptBand band, CutStates states) {
    std::vector<double> sums;
    for (const RetentionCurve& curve : retention.curves)
      if (curve.band == band && curve.states == states)
        for (const PerplexitySum& point : curve.points) sums.push_back(point.nll);
    return sums;
  }

  TinyModel tiny_;
  std::unique_ptr<SpectralOps> ops_ = tiny_.backend->make_spectral_ops();
  std::vector<std::vector<std::int32_t>> documents_{TinyModel::tokens(40), {}};
  std::size_t documents_done_ = 0;

  void SetUp() override {
    for (const std::int32_t token : documents_[0]) documents_[1].push_back((token + 5) % 61);
  }
};

TEST_F(RetainedBands, WholeSpectraGiveTheModelsOwnPerplexity) {
  for (const bool continuation : {false, true}) {
    const RetentionPlan whole = plan(continuation, {1});
    const Retention retention = run(whole, continuation ? "c" : "i");
    double expected = 0;
    for (const auto& tokens : documents_) {
      const auto own = document_nll(*tiny_.decoder, tokens);
      expected += std::accumulate(own.begin() + (continuation ? 28 : 0), own.end(), 0.0);
    }
    EXPECT_NEAR(retention.full.nll, expected, 1e-4);
    ASSERT_EQ(retention.curves.size(), 6U);
    for (const RetentionCurve& curve : retention.curves)  // the transform and its inverse round to f32
      EXPECT_NEAR(curve.points.at(0).nll, expected, 1e-4 * static_cast<double>(retention.full.scored));
  }
}

TEST_F(RetainedBands, ACurveCutsItsStatesToItsEndOfTheSpectrum) {
  const RetentionPlan half = plan(true, {0.5});
  const Retention retention = run(half);
  const std::size_t bins = 26;  // tokens 2 … 27
  const auto direct = [&](KeptBand band, bool cut_keys, bool cut_values) {
    std::vector<double> gains;
    for (const bool cut : {cut_keys, cut_values})
      for (std::size_t row = 0; row < half.layers.size(); ++row)
        for (std::size_t bin = 0; bin < bins; ++bin)
          gains.push_back(!cut || (bin < 13) == (band == KeptBand::kLow) ? 1 : 0);
    AblationForward forward(*tiny_.decoder, *ops_, half.setup);
    double sum = 0;
    for (const auto& tokens : documents_) {
      forward.begin(tokens);
      sum += forward.filtered(half.layers, {gains, {1, 2, half.layers.size(), bins}})[0];
    }
    return sum;
  };
  for (const KeptBand band : {KeptBand::kLow, KeptBand::kHigh}) {
    EXPECT_NEAR(nll(retention, band, CutStates::kKeys)[0], direct(band, true, false), 1e-3);
    EXPECT_NEAR(nll(retention, band, CutStates::kValues)[0], direct(band, false, true), 1e-3);
    EXPECT_NEAR(nll(retention, band, CutStates::kBoth)[0], direct(band, true, true), 1e-3);
  }
  EXPECT_GT(std::abs(nll(retention, KeptBand::kLow, CutStates::kKeys)[0] -
                     nll(retention, KeptBand::kHigh, CutStates::kKeys)[0]),
            1e-2);
}

TEST_F(RetainedBands, TheBestChunksAreThoseOfTheLargestDelta) {
  RetentionPlan chunks = plan(true, {0.5, 0.25});
  // Layers 0 and 1 need their lowest chunks, layers 2 and 3 their highest.
  chunks.chunks = {{Transform::kDct, false, 4, 26}, {{4, 3, 2, 1}, {4, 3, 2, 1}, {1, 2, 3, 4}, {1, 2, 3, 4}}};
  EXPECT_THAT(chunks.bands(), ::testing::ElementsAre(KeptBand::kLow, KeptBand::kHigh, KeptBand::kBest));
  EXPECT_EQ(chunks.kept(0.5), 2U);
  const Retention mixed = run(chunks, "mixed");
  chunks.chunks->delta = {{4, 3, 2, 1}, {4, 3, 2, 1}, {4, 3, 2, 1}, {4, 3, 2, 1}};
  const Retention lowest = run(chunks, "lowest");
  for (const CutStates states : kCutStates) {
    const auto low = nll(lowest, KeptBand::kLow, states), best = nll(lowest, KeptBand::kBest, states);
    for (std::size_t n = 0; n < 2; ++n) EXPECT_NEAR(best[n], low[n], 1e-4);
    EXPECT_GT(std::abs(nll(mixed, KeptBand::kBest, states)[0] - low[0]), 1e-3);
  }
}

TEST_F(RetainedBands, AFinishedDocumentComesFromTheJournal) {
  const RetentionPlan half = plan(true, {0.5});
  const Json first = to_json(retention_result({}, half, run(half)));
  documents_[0] = documents_[1];  // would give other sums if it were run again
  EXPECT_EQ(to_json(retention_result({}, half, run(half))), first);
  EXPECT_EQ(documents_done_, 2U);
}

}  // namespace
}  // namespace kvs
