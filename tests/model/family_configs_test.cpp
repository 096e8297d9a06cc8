// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "model/architecture.h"
#include "model/model.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

// Configs that Transformers refuses, or reads in a way of the class's own.
namespace kvs {
namespace {

Json family_golden(const std::string& name) {
  const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
  return parse_json(read_text_file(path, 1 << 20), path.string());
}

ModelConfig family_config(const Json& golden) {
  const test::TemporaryDirectory folder;
  test::write_formula_model(folder / "model", golden["config"], golden["tensors"]);
  return ModelSource::open(folder / "model")->config();
}

/// Returns the error, or "".
std::string family_refusal(const Json& config, const Json& tensors) {
  try {
    (void)family_config({{"config", config}, {"tensors", tensors}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Mamba2Configs, OtherNamesOfKeysHoldAsInTransformers) {
  Json nemotron = family_golden("nemotron_h");
  Json& config = nemotron["config"];
  config["n_groups"] = 3;
  config["mamba_n_groups"] = 2;
  config["conv_kernel"] = 2;
  config["mamba_d_conv"] = 4;
  config["use_conv_bias"] = false;
  config["mamba_conv_bias"] = true;
  config["mamba_dt_min"] = 0.25;
  config["layer_types"] = config["layers_block_type"];
  config["layers_block_type"] = {"mlp", "mlp", "mlp", "mlp"};
  const RecurrenceConfig block = family_config(nemotron).layer[0].recurrence;
  EXPECT_EQ(block.key_heads, 2U);
  EXPECT_EQ(block.kernel, 4U);
  EXPECT_EQ(block.least_step, 0.25F);
  Json granite = family_golden("granitemoehybrid");
  granite["config"]["layers_block_type"] = granite["config"]["layer_types"];
  granite["config"].erase("layer_types");
  EXPECT_TRUE(family_config(granite).layer[1].has_attention());
}

TEST(RecurrentConfigs, RefuseOtherFunctionsAfterTheConvolution) {
  for (const auto& [name, key] : {std::pair{"qwen3_next", "hidden_act"}, std::pair{"granitemoehybrid", "hidden_act"},
                                  std::pair{"falcon_h1", "hidden_act"}, std::pair{"nemotron_h", "mamba_hidden_act"},
                                  std::pair{"lfm2", "hidden_act"}, std::pair{"lfm2_moe", "hidden_act"}}) {
    Json golden = family_golden(name);
    golden["config"][key] = "gelu";
    EXPECT_NE(family_refusal(golden["config"], golden["tensors"])
                  .find(std::string("/") + key + ": found \"gelu\", supported"),
              std::string::npos)
        << name;
    golden["config"][key] = "swish";
    EXPECT_EQ(family_refusal(golden["config"], golden["tensors"]), "") << name;
  }
}

TEST(IndexConfigs, CountExpertsByAThirdNameAsWell) {
  Json golden = family_golden("glm_moe_dsa");
  const auto with = [&](int experts) {
    Json config = golden["config"];
    config["num_experts"] = experts;
    return family_refusal(config, golden["tensors"]);
  };
  EXPECT_EQ(with(6), "");
  EXPECT_NE(with(5).find("/num_experts: found 5, expected 6, the value of /n_routed_experts"), std::string::npos);
  golden["config"].erase("n_routed_experts");
  EXPECT_EQ(with(6), "");
}

TEST(IndexConfigs, ANumberIsNotEqualToANan) {
  const Json config{{"n_routed_experts", std::numeric_limits<double>::quiet_NaN()}, {"num_experts", 6}};
  test::expect_error(ErrorCode::kInput, "/num_experts: found 6, expected", [&] {
    (void)find_model_type("glm_moe_dsa")->experts->read({config, "config.json"}, 4);
  });
}

TEST(IndexConfigs, NameTheKindThatIsUnknown) {
  const Json golden = family_golden("glm_moe_dsa");
  const auto with = [&](const Json& kinds) {
    Json config = golden["config"];
    config["indexer_types"] = kinds;
    return family_refusal(config, golden["tensors"]);
  };
  EXPECT_NE(with({"full", "half", "full"}).find("/indexer_types/1: found \"half\", expected \"full\" or \"shared\""),
            std::string::npos);
  EXPECT_NE(with({"shared", "full", "full"}).find("/indexer_types/0: found \"shared\", expected an index of its own"),
            std::string::npos);
}

TEST(Lfm2Configs, ExpertsHaveNoGroups) {
  Json golden = family_golden("lfm2_moe");
  golden["config"]["n_group"] = 2;
  golden["config"]["topk_group"] = 7;
  golden["config"]["routed_scaling_factor"] = 2.5;
  const ModelConfig config = family_config(golden);
  const ExpertsConfig& experts = config.layer.back().feed_forward.experts;
  EXPECT_EQ(experts.groups, 1U);
  EXPECT_EQ(experts.scale, 2.5F);
}

TEST(Lfm2Configs, AWidthThatIsAdjustedToNothingIsRefused) {
  const Json golden = family_golden("lfm2");
  const auto with = [&](const char* key, const Json& value) {
    Json config = golden["config"];
    config["block_auto_adjust_ff_dim"] = true;
    config[key] = value;
    return family_refusal(config, golden["tensors"]);
  };
  const std::string expected = ": found 1, expected a width that leaves channels after its adjustment";
  EXPECT_NE(with("intermediate_size", 1).find("/intermediate_size" + expected), std::string::npos);
  EXPECT_NE(with("block_ff_dim", 1).find("/block_ff_dim" + expected), std::string::npos);
  EXPECT_NE(with("block_ffn_dim_multiplier", 1e-9).find("/intermediate_size: found "), std::string::npos);
}

TEST(SharedLayers, HaveTheSizesOfTheLayersThatTheyRead) {
  const Json golden = family_golden("gemma4_shared");  // full layers have heads of 24 channels
  Json config = golden["config"];
  config["layer_types"] = std::vector<std::string>(4, "full_attention");
  EXPECT_NE(family_refusal(config, golden["tensors"])
                .find("/num_kv_shared_layers: found 2 KV heads of 16 channels in layer 2, which reads the keys and "
                      "values of another layer; expected 2 KV heads of 24 channels in layer 1"),
            std::string::npos);
}

TEST(WeightFiles, WithoutTensorsAreNamed) {
  EXPECT_NE(family_refusal(family_golden("llama")["config"], Json::object()).find("/model: found no tensors, expected"),
            std::string::npos);
}

TEST(Ministral3Configs, HaveTransformersBaseIfTheyStateNone) {
  Json golden = family_golden("ministral3");
  golden["config"]["rope_parameters"].erase("rope_theta");
  EXPECT_EQ(family_config(golden).ropes[0].theta, 1e4);
  golden["config"].erase("rope_parameters");
  EXPECT_EQ(family_config(golden).ropes[0].theta, 1e6);
}

}  // namespace
}  // namespace kvs
