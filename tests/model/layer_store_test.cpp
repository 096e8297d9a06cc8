#include <gtest/gtest.h>

#include "core/error.h"
#include "model/decoder.h"
#include "tests/bench/random_model.h"

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

}  // namespace
}  // namespace kvs::test
