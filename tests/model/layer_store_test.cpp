// SPDX-License-Identifier: Apache-2.0
#include "model/layer_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "model/decoder.h"
#include "tests/bench/random_model.h"
#include "turns/turns.h"

namespace kvs::test {
namespace {

/// A model whose layers and head get `budget` bytes; 0 means no limit.
struct BudgetedModel {
  std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  Model model;
  Decoder decoder;

  BudgetedModel(const ModelSource& source, std::size_t budget) : model(source, *backend, {}, budget), decoder(model) {}
};

struct LayerStreaming : ::testing::Test {
  static constexpr std::size_t kLayers = 5;
  std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("layer_streaming_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::unique_ptr<ModelSource> source = random_source();
  BudgetedModel whole{*source, 0};
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>{7, 1, 299, 12, 12, 60, 151, 3};
  std::size_t head = whole.model.head().bytes(), layer = whole.model.layer(0).bytes();

  ~LayerStreaming() override { std::filesystem::remove_all(folder); }
  std::unique_ptr<ModelSource> random_source() const {
    std::filesystem::remove_all(folder);
    write_random_model(model_geometry("tiny-llama"), folder, {.dtype = DType::kF32});
    return ModelSource::open(folder);
  }
};

TEST_F(LayerStreaming, EverythingStaysWithoutABudget) { EXPECT_EQ(whole.model.placement().streamed_layers, 0U); }

TEST_F(LayerStreaming, StreamedLayersGiveTheSameBits) {
  const std::vector<float> expected = document_nll(whole.decoder, tokens);
  // With space for one layer, layers are loaded when needed; with space for two, the next is loaded ahead. Each further
  // layer of space keeps one more layer.
  for (std::size_t room = 1; room < kLayers; ++room) {
    BudgetedModel streamed(*source, head + room * layer);
    EXPECT_EQ(streamed.model.placement().streamed_layers, kLayers - (room < 2 ? 0 : room - 2));
    EXPECT_EQ(document_nll(streamed.decoder, tokens), expected) << room << " layers' room";
    EXPECT_EQ(document_nll(streamed.decoder, tokens), expected) << room << " layers' room, the second pass";
  }
}

TEST_F(LayerStreaming, LayersMayBeAskedForInAnyOrder) {
  BudgetedModel streamed(*source, head + 2 * layer);
  for (const std::size_t stop : {std::size_t{2}, std::size_t{1}, kLayers, std::size_t{2}}) {
    ResidualStream expected = whole.decoder.embed(tokens), found = streamed.decoder.embed(tokens);
    whole.decoder.advance(expected, stop);
    streamed.decoder.advance(found, stop);
    EXPECT_EQ(download(*streamed.backend, found.rows.view()), download(*whole.backend, expected.rows.view()))
        << "up to layer " << stop;
  }
}

TEST_F(LayerStreaming, NamesTheRoomThatOneLayerNeeds) {
  try {
    BudgetedModel streamed(*source, head + layer - 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_NE(std::string(error.what()).find(std::to_string(layer) + " for one layer"), std::string::npos)
        << error.what();
  }
}

TEST_F(LayerStreaming, PassesInTurnsGiveTheSameBits) {
  BudgetedModel streamed(*source, head + 2 * layer);
  std::vector<std::vector<std::int32_t>> documents(3, tokens);
  documents[1] = {5, 5, 17, 250};
  std::vector<std::vector<float>> found(documents.size());
  run_in_turns(
      documents.size(), [&](std::size_t n) { found[n] = document_nll(streamed.decoder, documents[n]); },
      [](std::size_t) {});
  for (std::size_t n = 0; n < documents.size(); ++n)
    EXPECT_EQ(found[n], document_nll(whole.decoder, documents[n])) << "document " << n;
}

/// Layers of a few weights, which count how often they are loaded.
struct CountedLayers {
  std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  std::atomic<int> loads = 0;

  LayerWeights load(Backend& memory) {
    ++loads;
    const WeightSource ones{
        4, 4, [](std::size_t, std::size_t, std::span<float> out) { std::ranges::fill(out, 1.0F); }, {}};
    LayerWeights weights;
    weights.attention_norm.gain = BackendTensor<float, 1>(memory, {4});
    weights.qkv = memory.make_weight(ones);
    weights.output = memory.make_weight(ones);
    return weights;
  }
  LayerStore store(std::vector<double> values, double layers) {
    const double bytes = static_cast<double>(load(*backend).bytes());
    loads = 0;
    return {*backend,
            values,
            [this](Backend& memory, std::size_t) { return load(memory); },
            static_cast<std::size_t>(layers * bytes),
            {}};
  }
};

TEST(LayerStoreTurns, ALayerIsLoadedOnceForAllCalls) {
  constexpr std::size_t kLayers = 5, kCalls = 3;
  const auto loads = [&](bool turns) {
    CountedLayers layers;
    {
      LayerStore store = layers.store(std::vector<double>(kLayers, 1), 2);
      const auto pass = [&](std::size_t) {
        for (std::size_t layer = 0; layer < kLayers; ++layer) (void)store.at(layer);
      };
      if (turns) run_in_turns(kCalls, pass, [](std::size_t) {});
      for (std::size_t call = 0; call < kCalls && !turns; ++call) pass(call);
    }
    return layers.loads.load();
  };
  // One load measures the bytes, and one layer is loaded ahead of the next pass.
  EXPECT_EQ(loads(false), 1 + static_cast<int>(kCalls * kLayers) + 1);
  EXPECT_EQ(loads(true), 1 + static_cast<int>(kLayers) + 1);
}

TEST(LayerStoreTurns, TheLargestLayersNeedTheRoom) {
  CountedLayers layers;
  const std::vector<double> values{1, 1, 1, 4, 4};  // of which the first has the bytes that are measured
  EXPECT_EQ(layers.store(values, 11).placement().streamed_layers, 0U);
  EXPECT_EQ(layers.store(values, 10.5).placement().streamed_layers, 3U);
  EXPECT_EQ(layers.store(values, 8).placement().streamed_layers, 5U);
  EXPECT_EQ(layers.store(values, 4).placement().streamed_layers, 5U);
  EXPECT_THROW(layers.store(values, 3.9), Error);
}

}  // namespace
}  // namespace kvs::test
