// SPDX-License-Identifier: Apache-2.0
#include "states/live_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/golden_model.h"
#include "turns/turns.h"

namespace kvs::test {
namespace {

using testing::ElementsAre;
using testing::Pair;

using States = std::vector<float>;

/// States of every layer as a hook of a whole pass sees them.
class RecordingHook final : public StateHook {
 public:
  void before_rope(LayerStates& states) override {
    q_pre.push_back(download(states.backend, states.q));
    k_pre.push_back(download(states.backend, states.k));
    v.push_back(download(states.backend, states.v));
    x_rows.push_back(states.x.rows);
  }
  void after_rope(LayerStates& states) override { k_post.push_back(download(states.backend, states.k)); }

  std::vector<States> q_pre, k_pre, k_post, v;
  std::vector<std::size_t> x_rows;
};

class LiveSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    const Golden golden = read_golden();
    document_ = golden.tokens;
    other_ = document_;
    std::ranges::reverse(other_);
    document_nll(*tiny_.decoder, other_, &whole_);
  }
  TinyModel tiny_;
  std::vector<std::int32_t> document_, other_;
  RecordingHook whole_;  // of the second document
};

TEST_F(LiveSourceTest, ShowsEveryStateOfEachLayerAsThePassHasIt) {
  LiveSource source(*tiny_.decoder, {document_, other_});
  EXPECT_EQ(source.documents(), 2U);
  EXPECT_EQ(source.tokens(), document_.size());
  std::vector<std::size_t> layers;
  source.visit(1, {.layers = {0, 1}, .states = {kStateKinds.begin(), kStateKinds.end()}, .x = true},
               [&](const DocumentStates& states) {
                 layers.push_back(states.layer);
                 EXPECT_EQ(states.document, 1U);
                 EXPECT_EQ(states.x.rows, document_.size());
                 EXPECT_EQ(states[StateKind::kQPre].shape(), (std::array<std::size_t, 3>{4, document_.size(), 8}));
                 EXPECT_EQ(states[StateKind::kV].shape(), (std::array<std::size_t, 3>{2, document_.size(), 8}));
                 EXPECT_EQ(download(*tiny_.backend, states[StateKind::kQPre]), whole_.q_pre[states.layer]);
                 EXPECT_EQ(download(*tiny_.backend, states[StateKind::kKPre]), whole_.k_pre[states.layer]);
                 EXPECT_EQ(download(*tiny_.backend, states[StateKind::kKPost]), whole_.k_post[states.layer]);
                 EXPECT_EQ(download(*tiny_.backend, states[StateKind::kV]), whole_.v[states.layer]);
               });
  EXPECT_EQ(layers, (std::vector<std::size_t>{0, 1}));
}

TEST_F(LiveSourceTest, LeavesOutWhatIsNotNeeded) {
  LiveSource source(*tiny_.decoder, {document_, other_});
  std::size_t calls = 0;
  source.visit(1, {.layers = {1}, .states = {StateKind::kKPre}}, [&](const DocumentStates& states) {
    ++calls;
    EXPECT_EQ(states.layer, 1U);
    EXPECT_EQ(download(*tiny_.backend, states[StateKind::kKPre]), whole_.k_pre[1]);
    EXPECT_EQ(states.x.data, nullptr);
    EXPECT_TRUE(states[StateKind::kQPre].empty() && states[StateKind::kKPost].empty() && states[StateKind::kV].empty());
  });
  EXPECT_EQ(calls, 1U);
}

TEST_F(LiveSourceTest, RefusesDocumentsOfDifferentLengths) {
  EXPECT_THROW(LiveSource(*tiny_.decoder, {{1, 2, 3}, {1, 2}}), Error);
  EXPECT_THROW(LiveSource(*tiny_.decoder, {}), Error);
}

TEST_F(LiveSourceTest, VisitsInTurnsReadAStreamedLayerOnce) {
  const std::size_t layer = tiny_.model->layer(0).bytes();
  const Model streamed(*tiny_.source, *tiny_.backend, {}, tiny_.model->head().bytes() + layer);
  Decoder decoder(streamed);
  LiveSource source(decoder, {document_, other_, document_}), whole(*tiny_.decoder, {document_});
  EXPECT_EQ(whole.visits_together(0), 1U);
  EXPECT_EQ(source.visits_together(SIZE_MAX / 4), 1U) << "more would not fit";
  ASSERT_GT(source.visits_together(0), 2U);
  std::vector<std::pair<std::size_t, std::size_t>> seen;  // (layer, document)
  run_in_turns(
      3,
      [&](std::size_t n) {
        source.visit(n, {.layers = {0, 1}, .states = {StateKind::kKPre}}, [&](const DocumentStates& states) {
          seen.emplace_back(states.layer, states.document);
          if (n != 1) return;
          EXPECT_EQ(download(*tiny_.backend, states[StateKind::kKPre]), whole_.k_pre[states.layer]);
        });
      },
      [](std::size_t) {});
  EXPECT_THAT(seen, ElementsAre(Pair(0, 0), Pair(0, 1), Pair(0, 2), Pair(1, 0), Pair(1, 1), Pair(1, 2)));
  EXPECT_EQ(streamed.placement().layers_read, 2U);  // nothing is read ahead: there is room for one layer
}

}  // namespace
}  // namespace kvs::test
