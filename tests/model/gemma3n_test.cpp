// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

/// The golden Gemma 3n: three streams, four layers, 101 rows in the table of layers' inputs.
class Gemma3n : public testing::Test {
 protected:
  Gemma3n() {
    const std::filesystem::path path = test::golden_path("parity/gemma3n.json");
    golden_ = parse_json(read_text_file(path, 1 << 20), path.string());
  }

  std::unique_ptr<ModelSource> open() {
    std::filesystem::remove_all(folder_ / "model");
    test::write_formula_model(folder_ / "model", golden_["config"], golden_["tensors"]);
    return ModelSource::open(folder_ / "model");
  }
  void expect_refused(ErrorCode code, const std::string& words) {
    try {
      (void)open();
      FAIL() << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  test::TemporaryDirectory folder_;
  Json golden_;
};

TEST_F(Gemma3n, LayersHaveTheirOwnWidthsAndShares) {
  const auto source = open();
  const ModelConfig& config = source->config();
  EXPECT_EQ(config.streams.count, 3U);
  EXPECT_TRUE(config.streams.scaled);
  EXPECT_EQ(config.laurel_rank, 6U);
  const std::vector<std::size_t> widths{56, 40, 56, 48};
  const std::vector<float> shares{0.95F, 0, 0.5F, 0};
  for (std::size_t layer = 0; layer < 4; ++layer) {
    EXPECT_EQ(config.layer[layer].feed_forward.d_ff, widths[layer]) << layer;
    EXPECT_EQ(config.layer[layer].feed_forward.sparsity, shares[layer]) << layer;
  }
  EXPECT_EQ(config.layer[2].attention.kv_layer, 0U);
  EXPECT_EQ(config.layer[3].attention.kv_layer, 1U);
}

TEST_F(Gemma3n, TokensBeyondTheTableHaveTheFirstRow) {
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto source = open();
  const Model model(*source, *backend);
  const std::size_t width = model.config().d_model, layers = model.config().layers(),
                    input = model.config().layer_inputs;
  const BackendTensor<float, 2> embedded(*backend, {2, width});
  backend->clear(embedded.view());
  const std::vector<std::int32_t> tokens{0, 130};
  const std::vector<float> inputs = download(*backend, model.layer_inputs(tokens, embedded.view())->view());
  for (std::size_t layer = 0; layer < layers; ++layer)
    for (std::size_t i = 0; i < input; ++i)
      ASSERT_EQ(inputs[(layer * 2 + 1) * input + i], inputs[layer * 2 * input + i]) << layer << " " << i;
}

TEST_F(Gemma3n, ConfigsAreRefusedByName) {
  golden_["config"]["altup_active_idx"] = 1;
  expect_refused(ErrorCode::kUnsupported, "/altup_active_idx: found 1, supported is: 0");
  golden_["config"]["altup_active_idx"] = 0;
  golden_["config"]["activation_sparsity_pattern"] = {0.5, 0.5, 1.0, 0};
  expect_refused(ErrorCode::kInput, "/activation_sparsity_pattern/2: found 1.0, expected a share from 0 to below 1");
  golden_["config"]["activation_sparsity_pattern"] = {0.5, 0.5};
  expect_refused(ErrorCode::kInput, "expected a share for each of 4 layers");
  golden_["config"]["activation_sparsity_pattern"] = 0.5;
  golden_["config"]["intermediate_size"] = {56, 40, 56};
  expect_refused(ErrorCode::kInput,
                 "/intermediate_size: found an array of 3 elements, expected a number, or one for each of 4");
  golden_["config"]["intermediate_size"] = {56, 40, 56, 48};
  golden_["config"]["num_kv_shared_layers"] = 4;
  expect_refused(ErrorCode::kInput, "config.json: /num_kv_shared_layers: found 4, expected fewer");
  golden_["config"].erase("num_kv_shared_layers");
  expect_refused(ErrorCode::kInput,
                 "config.json: /num_kv_shared_layers: found nothing, which stands for 4, expected fewer");
  golden_["config"]["num_kv_shared_layers"] = 2;
  golden_["tensors"].erase("model.altup_unembed_projections.1.weight");
  expect_refused(ErrorCode::kInput, "1 tensor is missing: model.altup_unembed_projections.1.weight");
}

}  // namespace
}  // namespace kvs
