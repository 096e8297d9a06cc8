// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/chunk_race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace kvs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Lt;

constexpr auto kNone = std::nullopt;
constexpr ChunkVerdict kKept = ChunkVerdict::kKept, kOpen = ChunkVerdict::kOpen, kDropped = ChunkVerdict::kDropped;

TEST(JudgeChunks, WhatDocumentsHaveInCommonDoesNotBlurADifference) {
  // Document 2 is a hundred times as hard as document 1 for both chunks: each one's own interval is ±12.7 · 49.5 about
  // 50. Their difference is 0.9 and 1.1: standard error 0.1, t(0.975, 1) = tan(0.475 π) = 12.7062.
  const ChunkRace race = judge_chunks({{1.9, 101.1}, {1.0, 100.0}}, 1, 0.95);
  EXPECT_NEAR(race.margin[0], 1 / 1.27062, 1e-5);
  EXPECT_THAT(race.verdict, ElementsAre(kOpen, kOpen));
  // At 90 % t(0.95, 1) = tan(0.45 π) = 6.3138: the interval, 1 ± 0.63, excludes 0.
  const ChunkRace decided = judge_chunks({{1.9, 101.1}, {1.0, 100.0}}, 1, 0.9);
  EXPECT_NEAR(decided.margin[0], 1 / 0.63138, 1e-4);
  EXPECT_THAT(decided.verdict, ElementsAre(kKept, kDropped));
}

TEST(JudgeChunks, AVerdictNeedsAsManyOthersBelowAsAreDropped) {
  // Kept: 2 of 4. Chunk 0 is above all, chunk 3 below all; 1 and 2 differ by +1 and −1, so neither is above 2 others.
  const ChunkLosses losses{{9.0, 9.1, 9.0}, {5.0, 5.5, 5.3}, {4.0, 6.5, 5.2}, {1.0, 1.0, 1.1}};
  EXPECT_THAT(judge_chunks(losses, 2, 0.95).verdict, ElementsAre(kKept, kOpen, kOpen, kDropped));
  // Kept: 1 of 4. All chunks below chunk 0 are dropped, although 1 and 2 are not distinguished.
  EXPECT_THAT(judge_chunks(losses, 1, 0.95).verdict, ElementsAre(kKept, kDropped, kDropped, kDropped));
}

TEST(JudgeChunks, ComparesOverTheDocumentsThatBothHave) {
  // Without document 2 chunk 1 would seem to be the larger one: document 2 is hard for both.
  const ChunkRace race = judge_chunks({{2.0, kNone, 2.1}, {1.0, 50.0, 1.1}}, 1, 0.95);
  EXPECT_EQ(race.verdict[0], kKept);
  EXPECT_EQ(race.verdict[1], kDropped);
}

TEST(JudgeChunks, OneCommonDocumentDecidesNothing) {
  EXPECT_THAT(judge_chunks({{2.0}, {1.0}}, 1, 0.95).verdict, ElementsAre(kOpen, kOpen));
  EXPECT_THAT(judge_chunks({{9.0, kNone, 9.0}, {1.0, 1.0, kNone}}, 1, 0.95).verdict, ElementsAre(kOpen, kOpen));
}

TEST(JudgeChunks, EqualChunksAreNeverToldApart) {
  const ChunkRace race = judge_chunks({{1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}}, 1, 0.5);
  EXPECT_THAT(race.verdict, ElementsAre(kOpen, kOpen));
  EXPECT_THAT(race.margin, ElementsAre(0, 0));
}

TEST(JudgeChunks, NothingIsOpenWhereAllChunksAreKept) {
  EXPECT_THAT(judge_chunks({{1.0, 2.0}, {1.0, 2.0}}, 2, 0.95).verdict, ElementsAre(kKept, kKept));
}

TEST(KeptChunks, VerdictsComeBeforeDelta) {
  const ChunkRace race{{kDropped, kOpen, kKept, kOpen, kOpen}, {}};
  const double delta[] = {9, 3, 1, 4, 3};
  EXPECT_THAT(kept_chunks(race, delta, 1), ElementsAre(2));
  EXPECT_THAT(kept_chunks(race, delta, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept_chunks(race, delta, 5), ElementsAre(0, 1, 2, 3, 4));
}

TEST(OpenChunks, ThoseNearestToTheThresholdOfAllLayersCome) {
  const ChunkRace races[] = {{{kOpen, kKept, kOpen}, {0.9, 2, 0.2}}, {{kOpen, kOpen, kDropped}, {0.5, 0.2, 3}}};
  const std::vector<std::size_t> all[] = {{0, 1, 2}, {0, 1, 2}}, some[] = {{0, 1}, {1}};
  EXPECT_THAT(open_chunks(races, all, 9), ElementsAre(ElementsAre(0, 2), ElementsAre(0, 1)));
  EXPECT_THAT(open_chunks(races, all, 3), ElementsAre(ElementsAre(2), ElementsAre(0, 1)));
  EXPECT_THAT(open_chunks(races, all, 1), ElementsAre(ElementsAre(2), IsEmpty()));  // equal margins: the first layer
  EXPECT_THAT(open_chunks(races, all, 0), ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_THAT(open_chunks(races, some, 9), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(ChunksToGoOn, FallByOneFactorThatSpendsThePasses) {
  EXPECT_EQ(chunks_to_go_on(10, 3, 30), 10U);  // enough for all
  EXPECT_EQ(chunks_to_go_on(16, 3, 14), 8U);   // 8 + 4 + 2
  EXPECT_EQ(chunks_to_go_on(27, 2, 12), 9U);   // 9 + 3
  EXPECT_EQ(chunks_to_go_on(10, 1, 7), 7U);    // the last document takes what is left
  EXPECT_EQ(chunks_to_go_on(10, 4, 0), 0U);
}

TEST(ShuffledDocuments, AreEachOfThemOnceInTheSeedsOrder) {
  const auto order = shuffled_documents(50, 3);
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), 50U);
  EXPECT_THAT(order, ::testing::Each(Lt(50U)));
  EXPECT_EQ(order, shuffled_documents(50, 3));
  EXPECT_NE(order, shuffled_documents(50, 4));
}

}  // namespace
}  // namespace kvs
