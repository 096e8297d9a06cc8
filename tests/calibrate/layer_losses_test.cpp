// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/layer_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/elitekv/caches.h"
#include "eval/evaluation.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::Pointwise;

/// A layer with `candidate` + 1 rotated chunks per head.
EliteLayer partly_rotated(std::size_t layer, std::size_t candidate) {
  EliteLayer result;
  result.layer = layer;
  std::vector<std::size_t> chunks;
  for (std::size_t chunk = 0; chunk <= candidate; ++chunk) chunks.push_back(chunk);
  result.elite = {chunks, chunks};
  return result;
}

constexpr std::size_t kLength = 40, kAllChunks = 3;

std::vector<std::vector<std::int32_t>> two_documents() {
  auto reversed = TinyModel::tokens(kLength);
  std::ranges::reverse(reversed);
  return {TinyModel::tokens(kLength), reversed};
}

/// LayerLosses of layers 1 and 3 whose candidates are numbers of rotated chunks; counts the caches it makes.
struct ChosenChunks {
  ChosenChunks()
      : documents(two_documents()),
        losses(*tiny.decoder, documents, {1, 3}, [this](std::size_t n, std::size_t candidate) {
          ++made;
          const ModelConfig& config = tiny.model->config();
          const EliteLayer layer = partly_rotated(2 * n + 1, candidate);
          return make_elitekv_cache(
              make_elite_products(*tiny.backend, layer, elite_layer_shape(config, layer.layer, kLength)));
        }) {}

  /// Returns these losses from whole runs.
  Evaluation evaluated(const LayerChoice& choice) {
    const EliteCaches caches(*tiny.backend, tiny.model->config(),
                             {partly_rotated(1, choice[0]), partly_rotated(3, choice[1])}, kLength);
    return evaluate(*tiny.decoder, documents, {.make = [&] { return caches.make(); }, .compare = true});
  }

  TinyModel tiny;
  std::size_t made = 0;
  std::vector<std::vector<std::int32_t>> documents;
  LayerLosses losses;
};

TEST(LayerLosses, OfAnyOrderOfChoicesAreThoseOfWholeRuns) {
  ChosenChunks chosen;
  for (const LayerChoice& choice : {LayerChoice{0, 2}, {0, 1}, {0, 1}, {2, 1}, {2, 0}, {0, 2}}) {
    const Evaluation whole = chosen.evaluated(choice);
    std::vector<double> expected;
    for (const double nll : whole.sum.per_document) expected.push_back(nll / (kLength - 1));
    EXPECT_THAT(chosen.losses.nll(choice), Pointwise(DoubleNear(1e-9), expected));
    const std::vector<double> kl = chosen.losses.divergence(choice);
    EXPECT_NEAR((kl[0] + kl[1]) * (kLength - 1), whole.full->divergence.kl, 1e-9);
    EXPECT_GT(kl[0], 1e-5);
  }
}

TEST(LayerLosses, OfTheWholeCacheAreNothing) {
  EXPECT_THAT(ChosenChunks().losses.divergence({kAllChunks, kAllChunks}), Each(DoubleNear(0, 1e-6)));
}

TEST(LayerLosses, RunWhatLiesAboveTheFirstChangeAlone) {
  ChosenChunks chosen;
  chosen.losses.nll({0, 0});
  EXPECT_EQ(chosen.made, 4U);  // two layers of two documents
  chosen.losses.nll({0, 1});
  EXPECT_EQ(chosen.made, 6U);
  chosen.losses.nll({1, 1});
  EXPECT_EQ(chosen.made, 10U);
}

}  // namespace
}  // namespace kvs
