// SPDX-License-Identifier: Apache-2.0
#include "run/model_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/work.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A model with the config and the shapes of tests/golden/parity.
class FormulaModel {
 public:
  explicit FormulaModel(const std::string& name) {
    const std::filesystem::path path = std::filesystem::path(KVS_GOLDEN_DIR) / "parity" / (name + ".json");
    const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
    test::write_formula_model(folder_ / "model", golden["config"], golden["tensors"]);
    source_ = ModelSource::open(folder_ / "model");
  }
  const ModelSource& source() const { return *source_; }

 private:
  test::TemporaryDirectory folder_;
  std::unique_ptr<ModelSource> source_;
};

// The golden qwen3_moe: 3 layers, d_model 48, 4 query and 2 KV heads of 20 channels, 131 tokens, untied head. Layer 1
// is dense, d_ff 56; layers 0 and 2 have 6 experts of 24 channels, of which a token goes through 3.
constexpr std::size_t kExpert = 3 * 24 * 48, kRouter = 6 * 48, kHead = 131 * 48,
                      kAttention = 3 * (2 * 48 * 80 + 2 * 48 * 40), kDense = 3 * 56 * 48,
                      kNorms = 48 + 3 * (2 * 48 + 2 * 20);

TEST(ModelInfoOfExperts, CountsAllParametersAndThoseOfAToken) {
  const FormulaModel model("qwen3_moe");
  const ModelInfo info = model_info(model.source(), 64);
  const std::size_t outside = 2 * kHead + kAttention + kDense + kNorms + 2 * kRouter;
  EXPECT_EQ(info.parameters, outside + 2 * 6 * kExpert);
  ASSERT_TRUE(info.experts);
  EXPECT_EQ(info.experts->layers, 2U);
  EXPECT_EQ(info.experts->count, 6U);
  EXPECT_EQ(info.experts->chosen, 3U);
  EXPECT_EQ(info.experts->d_ff, 24U);
  EXPECT_EQ(info.experts->shared_d_ff, 0U);
  EXPECT_EQ(info.experts->active_parameters, outside + 2 * 3 * kExpert);
  EXPECT_THAT(to_text(info), HasSubstr("experts       3 of 6 for each token, d_ff 24, in 2 of 3 layers; "));
  EXPECT_EQ(to_json(info).at("experts").at("count"), 6);
}

TEST(ModelInfoOfExperts, NamesTheSharedExpert) {
  const FormulaModel model("qwen2_moe");
  const ModelInfo info = model_info(model.source(), 64);
  EXPECT_EQ(info.experts->layers, 3U);
  EXPECT_EQ(info.experts->shared_d_ff, 40U);
  EXPECT_EQ(info.parameters - info.experts->active_parameters, 3 * 3 * kExpert);
  EXPECT_THAT(to_text(info), HasSubstr(", d_ff 24, and a shared one, d_ff 40, in 3 of 3 layers; "));
}

TEST(ModelInfoOfExperts, DenseModelsHaveNone) {
  const FormulaModel model("qwen3");
  const ModelInfo info = model_info(model.source(), 64);
  EXPECT_FALSE(info.experts);
  EXPECT_FALSE(to_json(info).contains("experts"));
  EXPECT_THAT(to_text(info), Not(HasSubstr("experts")));
}

TEST(ModelInfoOfExperts, WorkIsThatOfTheChosenExperts) {
  const FormulaModel model("qwen3_moe");
  EXPECT_NEAR(products_per_token(model.source().config()),
              static_cast<double>(kHead + kAttention + kDense + 2 * (kRouter + 3 * kExpert)), 1e-6);
}

// The golden nemotron_h: d_model 48, ungated networks. Layer 0 is Mamba-2 with 6 value heads of 16 channels and 2 key
// heads of 12; the rows of its heads' steps are not counted. Layer 1 has 6 experts of 24 channels that read a latent of
// 20; a token goes through 2 of them and a shared one of 40. Layer 2 has attention, layer 3 a network of 56 channels.
TEST(ModelInfoOfExperts, ExpertsThatReadALatentHaveItsChannels) {
  const FormulaModel model("nemotron_h");
  const ModelInfo info = model_info(model.source(), 64);
  constexpr std::size_t kLatentExpert = 2 * 24 * 20;
  EXPECT_EQ(info.parameters - info.experts->active_parameters, (6 - 2) * kLatentExpert);
  constexpr std::size_t kMamba = 48 * (2 * 24 + 3 * 96) + 3 * 6 * 12 * 16, kLatentMaps = 2 * 20 * 48,
                        kShared = 2 * 40 * 48, kQkvo = 48 * (2 * 64 + 2 * 32), kNetwork = 2 * 56 * 48;
  EXPECT_NEAR(
      products_per_token(model.source().config()),
      static_cast<double>(kMamba + kRouter + 2 * kLatentExpert + kLatentMaps + kShared + kQkvo + kNetwork + kHead),
      1e-6);
  EXPECT_EQ(layer_values(model.source().config(), 1),
            static_cast<double>(kRouter + 6 * kLatentExpert + kLatentMaps + kShared));
}

TEST(ModelInfoOfExperts, APassHoldsTheWidestBlockOfALayer) {
  ModelConfig config = FormulaModel("qwen3_moe").source().config();
  const double before = pass_memory(config, 0, 1);
  config.layer[2].feed_forward.experts.d_ff = 57;  // one more than the dense layer
  EXPECT_EQ(pass_memory(config, 0, 1) - before, 3 * sizeof(float));
  config.layer[2].feed_forward.experts.shared_d_ff = 60;
  EXPECT_EQ(pass_memory(config, 0, 1) - before, 4 * 3 * sizeof(float));
}

}  // namespace
}  // namespace kvs
