// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/model_json.h"
#include "results/evaluation.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

/// Returns the config of a golden model of tests/parity.
ModelConfig config_of(const std::string& name) {
  const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
  const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
  const test::TemporaryDirectory folder;
  test::write_formula_model(folder / "model", golden["config"], golden["tensors"]);
  return ModelSource::open(folder / "model")->config();
}

TEST(ModelRecord, CountsOneRowForKeysAndValuesThatShareIt) {
  const ModelConfig config = config_of("gemma4_one_row");
  const ModelRecord record = model_record(config, "", 100);
  ASSERT_TRUE(record.one_row_layers.has_value());
  EXPECT_EQ(*record.one_row_layers, (std::vector<std::size_t>{1, 3}));
  std::size_t values = 0;
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    EXPECT_EQ(record.cache_values(layer), config.layer[layer].attention.cache_values_per_token()) << layer;
    values += record.cache_values(layer);
  }
  EXPECT_EQ(values, config.cache_values_per_token());
  EXPECT_EQ(from_json<ModelRecord>({to_json(record), "record"}).one_row_layers, record.one_row_layers);
}

TEST(ModelRecord, CountsNothingForLayersThatReadOthers) {
  const ModelConfig config = config_of("gemma4_shared");
  const ModelRecord record = model_record(config, "", 100);
  for (std::size_t layer = 0; layer < config.layers(); ++layer)
    EXPECT_EQ(record.cache_values(layer) == 0, config.layer[layer].attention.kv_layer.has_value()) << layer;
}

TEST(ModelRecord, StatesTheBytesOfRecurrentStates) {
  const ModelConfig config = config_of("qwen3_5");
  EvaluationResult result;
  result.model = model_record(config, "", 100);
  ASSERT_TRUE(result.model.recurrent_bytes.has_value());
  EXPECT_EQ(*result.model.recurrent_bytes, 4 * config.recurrent_values());
  const std::string words = "besides, " + std::to_string(4 * config.recurrent_values()) + " bytes of recurrent states";
  EXPECT_NE(to_text(result).find(words), std::string::npos) << to_text(result);
  result.model.recurrent_bytes.reset();
  EXPECT_EQ(to_text(result).find("recurrent"), std::string::npos);
}

TEST(ModelRecord, ConfigsAndModelsWithoutThemHaveNoSuchMembers) {
  for (const char* const name : {"one_row_layers", "recurrent_bytes"}) {
    EXPECT_FALSE(to_json(model_record(config_of("llama"), "", 100)).contains(name));
    EXPECT_FALSE(model_json(config_of("qwen3_5"), "", 100).contains(name));
    EXPECT_FALSE(model_json(config_of("gemma4_one_row"), "", 100).contains(name));
  }
}

}  // namespace
}  // namespace kvs
