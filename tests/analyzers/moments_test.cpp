// SPDX-License-Identifier: Apache-2.0
#include "analyzers/moments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "kernels/backend.h"
#include "tests/analyzers/memory_source.h"

namespace kvs {
namespace {

/// Small integers without any symmetry.
float scattered(std::size_t document, std::size_t layer, StateKind state, std::size_t head, std::size_t token,
                std::size_t channel) {
  const auto mixed = (document + 1) * 7919 + layer * 104729 + static_cast<std::size_t>(state) * 1299709 +
                     head * 15485863 + token * token * 32452843 + channel * 49979687;
  return static_cast<float>(mixed % 17) - 8.0F;
}

MomentShape all_states() {
  return {.states = {StateKind::kKPre, StateKind::kKPost, StateKind::kV},
          .kv_heads = 2,
          .head_dim = 3,
          .tokens = 12,
          .first_token = 2};
}

void visit(MomentSource& source, std::size_t first, std::size_t last) {
  for (std::size_t document = first; document < last; ++document)
    source.visit(document, {.layers = {1, 4}}, [](const DocumentStates&) {});
}

std::vector<std::vector<double>> copy_of_sums(const MomentSource& source) {
  std::vector<std::vector<double>> copy;
  for (const auto sum : source.sums()) copy.emplace_back(sum.begin(), sum.end());
  return copy;
}

TEST(Moments, AreSumsOverTheTokensBehindTheSinks) {
  MemorySource inner(2, 2, 12, 3, scattered);
  MomentSource source(inner, all_states(), {1, 4});
  visit(source, 0, 2);
  const LayerMoments& moments = source.moments()[1];
  const auto x = [](std::size_t document, StateKind state, std::size_t head, std::size_t token, std::size_t channel) {
    return static_cast<double>(scattered(document, 4, state, head, token, channel));
  };
  // Whole heads: 0 and 1 of k_pre, then 0 and 1 of v. Pair (3, 1) is at index 3 · 4 / 2 + 1 = 7.
  double sum = 0, pair = 0, rotated = 0, lagged = 0, first = 0, last = 0;
  for (std::size_t document = 0; document < 2; ++document) {
    for (std::size_t token = 2; token < 12; ++token) {
      sum += x(document, StateKind::kV, 1, token, 2);
      pair += x(document, StateKind::kV, 1, token, 2) * x(document, StateKind::kKPre, 1, token, 0);
      rotated += x(document, StateKind::kKPost, 1, token, 0) * x(document, StateKind::kKPost, 1, token, 1);
    }
    for (std::size_t token = 2; token + 4 < 12; ++token) {
      lagged += 0.5 * (x(document, StateKind::kV, 1, token, 1) * x(document, StateKind::kV, 1, token + 4, 0) +
                       x(document, StateKind::kV, 1, token, 0) * x(document, StateKind::kV, 1, token + 4, 1));
    }
    first += x(document, StateKind::kV, 1, 2 + 3, 1);
    last += x(document, StateKind::kV, 1, 11 - 3, 1);
  }
  const std::size_t lag_row = 3 * 4 + 3;  // 4 lags a head; lag 4
  EXPECT_EQ(moments.sum[3 * 3 + 2], sum);
  EXPECT_EQ(moments.pairs[7 * 9 + 2 * 3 + 0], pair);
  EXPECT_EQ(moments.rotated[9 + 0 * 3 + 1], rotated);
  EXPECT_EQ(moments.lags[lag_row * 6 + 1], lagged);  // row 1, column 0 of the triangle
  EXPECT_EQ(moments.edges[(2 * lag_row + 0) * 3 + 1], first);
  EXPECT_EQ(moments.edges[(2 * lag_row + 1) * 3 + 1], last);
}

TEST(Moments, GoOnFromSavedSumsWithTheSameBitsOnAnyNumberOfThreads) {
  const auto value = [](auto... at) { return 0.1F * scattered(at...); };  // rounds in sums of squares
  MemorySource inner(5, 2, 12, 3, value);
  MomentSource whole(inner, all_states(), {1, 4}), begun(inner, all_states(), {1, 4}),
      resumed(inner, all_states(), {1, 4});
  const auto one = make_backend("cpu", DType::kF32, 1);
  visit(whole, 0, 5);
  const auto three = make_backend("cpu", DType::kF32, 3);
  visit(begun, 0, 2);
  resumed.restore(copy_of_sums(begun));
  visit(resumed, 2, 5);
  EXPECT_EQ(copy_of_sums(resumed), copy_of_sums(whole));
}

TEST(Moments, PassOnWhatWasAskedForAndMore) {
  MemorySource inner(1, 2, 12, 3, scattered);
  MomentShape shape = all_states();
  shape.states = {StateKind::kV};
  MomentSource source(inner, shape, {1});
  std::size_t layers = 0;
  source.visit(0, {.layers = {1}, .states = {StateKind::kKPost}}, [&](const DocumentStates& states) {
    EXPECT_EQ(states[StateKind::kKPost].extent(1), 12U);
    ++layers;
  });
  EXPECT_EQ(layers, 1U);
}

TEST(Moments, RefuseSumsOfAnotherSize) {
  MemorySource inner(1, 2, 12, 3, scattered);
  MomentSource source(inner, all_states(), {1}), other(inner, all_states(), {1, 4});
  EXPECT_THROW(source.restore(copy_of_sums(other)), Error);
}

}  // namespace
}  // namespace kvs
