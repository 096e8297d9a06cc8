// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/random_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "model/decoder.h"
#include "model/model_tensors.h"
#include "tests/bench/random_gguf.h"

namespace kvs::test {
namespace {

struct RandomModel : ::testing::Test {
  std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("random_model_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());

  RandomModel() { std::filesystem::remove_all(folder); }
  ~RandomModel() override { std::filesystem::remove_all(folder); }
};

TEST_F(RandomModel, IsOneThatTheLoaderTakesAndRuns) {
  const ModelGeometry& geometry = model_geometry("tiny-llama");
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::filesystem::remove_all(folder);
    const std::uint64_t bytes = write_random_model(geometry, folder, {.dtype = type});
    const auto source = ModelSource::open(folder);
    const ModelConfig& config = source->config();
    EXPECT_TRUE(source->notes().empty());
    EXPECT_EQ(config.layers(), geometry.layers);
    EXPECT_EQ(config.kv_heads(), geometry.kv_heads);
    const std::size_t layer = 2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64;  // norms; q, o; k, v; gate, up, down
    EXPECT_EQ(bytes, (2 * 300 * 64 + 64 + 5 * layer) * item_size(type));
    const auto backend = make_backend("cpu", DType::kF32);
    const Model model(*source, *backend);
    Decoder decoder(model);
    // Logits of about unit variance: the mean NLL is near log V + 1/2 (log-normal mean), not near 0 or huge.
    const std::vector<float> nll = document_nll(decoder, std::vector<std::int32_t>{7, 1, 299, 12, 12, 60, 151, 3});
    double mean = 0;
    for (const float value : nll) mean += value / static_cast<double>(nll.size());
    EXPECT_NEAR(mean, std::log(300.0) + 0.5, 2.0) << name_of(type);
  }
}

TEST_F(RandomModel, ShardsHoldTheSameValues) {
  const ModelGeometry& geometry = model_geometry("tiny-llama");
  write_random_model(geometry, folder, {.dtype = DType::kBF16, .seed = 5});
  const std::vector<float> whole = ModelSource::open(folder)->projection(3, 'v');
  std::filesystem::remove_all(folder);
  write_random_model(geometry, folder, {.dtype = DType::kBF16, .seed = 5, .shard_bytes = 50'000});
  ASSERT_TRUE(std::filesystem::exists(folder / "model.safetensors.index.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
  EXPECT_EQ(ModelSource::open(folder)->projection(3, 'v'), whole);
  std::filesystem::remove_all(folder);
  write_random_model(geometry, folder, {.dtype = DType::kBF16, .seed = 6});
  EXPECT_NE(ModelSource::open(folder)->projection(3, 'v'), whole) << "another seed";
}

TEST_F(RandomModel, WeightsHaveTheVarianceThatKeepsActivations) {
  write_random_model(model_geometry("tiny-llama"), folder, {.dtype = DType::kF32});
  const auto source = ModelSource::open(folder);
  const std::vector<float> q = source->projection(0, 'q');
  double square = 0;
  for (const float value : q) square += static_cast<double>(value) * value;
  // 64 · 64 uniform values of variance 1/64: x² has the relative deviation √(4/5), the mean of 4096 of them 1.4 %.
  EXPECT_NEAR(square / static_cast<double>(q.size()), 1.0 / 64, 5 * 0.014 / 64);
  for (const float gain : source->tensors().vector(TensorRole::kFinalNorm)) EXPECT_NEAR(gain, 1.0F, 0.1F);
}

TEST_F(RandomModel, DoesNotReplaceAModel) {
  write_random_model(model_geometry("tiny-llama"), folder, {});
  try {
    write_random_model(model_geometry("tiny-llama"), folder, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConflict);
  }
}

TEST_F(RandomModel, WithExpertsIsAGgufOfUnitVariance) {
  const ExpertsGeometry& geometry = experts_geometries().back();
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "experts.gguf";
  const std::uint64_t bytes = write_random_gguf(geometry, file, 3);
  EXPECT_THROW(write_random_gguf(geometry, file, 3), Error);
  const auto source = ModelSource::open(file);
  EXPECT_TRUE(source->notes().empty());
  const ExpertsConfig& experts = source->config().layer.front().feed_forward.experts;
  EXPECT_EQ(experts.count, geometry.experts);
  EXPECT_EQ(experts.chosen, geometry.chosen);
  const std::size_t matrices = 2 * 512 * 256 + 3 * (2 * 256 * 256 + 2 * 64 * 256 + 8 * 3 * 256 * 256);
  EXPECT_EQ(bytes, matrices / 256 * 144 + 4 * (256 + 3 * (2 * 256 + 2 * 32 + 8 * 256)));
  double squares = 0, sum = 0;
  const std::vector<float> values = source->projection(1, 'q');
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(squares / static_cast<double>(values.size()) * 256, 1, 0.02);
  EXPECT_NEAR(sum / static_cast<double>(values.size()) * 16, 0, 0.02);
  const auto backend = make_backend("cpu", DType::kF32);
  const Model model(*source, *backend);
  Decoder decoder(model);
  const std::vector<float> nll = document_nll(decoder, std::vector<std::int32_t>{7, 1, 299, 12, 12, 60, 151, 3});
  double mean = 0;
  for (const float value : nll) mean += value / static_cast<double>(nll.size());
  EXPECT_NEAR(mean, std::log(512.0) + 0.5, 2.0);
}

}  // namespace
}  // namespace kvs::test
