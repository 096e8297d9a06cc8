// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/ablation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ranks/one_process.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

class AblationPasses : public ::testing::Test {
 protected:
  static constexpr std::size_t kTokens = 40, kDocuments = 5, kLayers = 4, kChunks = 4;

  AblationPasses() {
    plan_.setup = {true, kTokens, 28, 2, 3, Transform::kDft, false};
    plan_.grid = {Transform::kDft, false, kChunks, plan_.setup.filtered()};
    plan_.chunk_counts = {kChunks};
    plan_.layers = {0, 1, 2, 3};
    for (std::size_t n = 0; n < kDocuments; ++n) {
      auto& tokens = documents_.emplace_back(TinyModel::tokens(kTokens));
      for (auto& token : tokens) token = static_cast<std::int32_t>((token * (n + 2) + n) % 61);
    }
  }
  /// Continues with the journal `name` if it exists.
  AblationTable ablate_into(const std::string& name) {
    const auto path = tiny_.folder / name;
    Journal journal = std::filesystem::exists(path) ? Journal::resume(path, {}) : Journal::create(path, {});
    AblationForward forward(*tiny_.decoder, *ops_, plan_.setup);
    return ablate(forward, plan_, documents_, *ranks_, &journal, [this](std::size_t done, std::size_t most) {
      progress_.push_back({done, most});
    });
  }
  TinyModel tiny_;
  std::unique_ptr<SpectralOps> ops_ = tiny_.backend->make_spectral_ops();
  std::unique_ptr<Ranks> ranks_ = make_one_process();
  AblationPlan plan_;
  std::vector<std::vector<std::int32_t>> documents_;
  std::vector<std::pair<std::size_t, std::size_t>> progress_;  // (done, most)
};

TEST_F(AblationPasses, ARaceThatDecidesNothingIsTheFullTable) {
  const AblationSums full = ablate_into("full").sums(kChunks);
  EXPECT_EQ(progress_.back(), (std::pair<std::size_t, std::size_t>{80, 80}));  // 5 documents · 4 layers · 4 chunks
  plan_.race = {.passes = 1000, .confidence = 0.999999};
  const AblationTable table = ablate_into("race");
  EXPECT_EQ(table.passes(), 80U);
  EXPECT_EQ(table.sums(kChunks).ablated, full.ablated);  // though the documents came in another order
  EXPECT_EQ(table.sums(kChunks).base, full.base);
}

TEST_F(AblationPasses, ABudgetIsSpentAndNotExceeded) {
  plan_.race = {.passes = 50, .confidence = 0.999999};
  const AblationTable table = ablate_into("budget");
  EXPECT_EQ(table.passes(), 50U);
  for (const auto& [done, most] : progress_) {
    EXPECT_LE(done, most);
    EXPECT_EQ(most, 50U);
  }
  EXPECT_THAT(ablated_documents(table.sums(kChunks)), Each(Each(AllOf(Ge(2U), Le(kDocuments)))));
  for (const auto& kept : choose_chunks(plan_, table.sums(kChunks))) EXPECT_EQ(kept.size(), 2U);
}

TEST_F(AblationPasses, DecidedChunksGetNoMoreDocuments) {
  plan_.race = {.passes = 1000, .confidence = 0.5};
  const AblationTable table = ablate_into("decided");
  EXPECT_LT(table.passes(), 80U);
  EXPECT_EQ(progress_.back(), (std::pair{table.passes(), table.passes()}));
  // Decisions from the first two documents need two documents.
  const auto order = shuffled_documents(kDocuments, 0);
  const auto early = judge_layers(plan_, table.sums(kChunks, std::span(order).first(2)));
  const auto documents = ablated_documents(table.sums(kChunks));
  std::size_t decided = 0;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      const bool open = early[layer].verdict[chunk] == ChunkVerdict::kOpen;
      EXPECT_EQ(documents[layer][chunk] == 2, !open) << layer << ' ' << chunk;
      decided += open ? 0 : 1;
    }
  }
  EXPECT_GT(decided, 0U);
  // Later verdicts do not revoke earlier ones.
  const auto late = judge_layers(plan_, table.sums(kChunks));
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      const ChunkVerdict before = early[layer].verdict[chunk];
      EXPECT_TRUE(before == ChunkVerdict::kOpen || late[layer].verdict[chunk] == before) << layer << ' ' << chunk;
    }
  }
}

TEST_F(AblationPasses, AResumedRaceMakesTheSamePasses) {
  plan_.race = {.passes = 60, .confidence = 0.6, .seed = 3};
  ablate_into("whole");
  const auto whole = Journal::read(tiny_.folder / "whole").records;
  for (const std::size_t cut : {std::size_t{0}, std::size_t{7}, whole.size() - 2}) {
    const std::string name = "cut" + std::to_string(cut);
    {
      Journal journal = Journal::create(tiny_.folder / name, {});
      for (std::size_t n = 0; n < cut; ++n) journal.append(whole[n]);
    }
    ablate_into(name);
    EXPECT_EQ(Journal::read(tiny_.folder / name).records, whole) << "after " << cut << " units";
  }
}

TEST_F(AblationPasses, OneDocumentLeavesEveryChunkOpen) {
  documents_.resize(1);
  plan_.race = {.passes = 16};
  const AblationTable table = ablate_into("one");
  EXPECT_EQ(table.passes(), 16U);
  for (const ChunkRace& race : judge_layers(plan_, table.sums(kChunks)))
    EXPECT_THAT(race.verdict, Each(ChunkVerdict::kOpen));
}

}  // namespace
}  // namespace kvs
