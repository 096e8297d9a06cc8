// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/cache_scheme.h"

#include <gtest/gtest.h>

#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

CacheScheme scheme_of(const std::string& config, const std::string& modelopt = "", bool by_head = false) {
  const test::TemporaryDirectory folder;
  (void)folder.write("config.json", config);
  if (!modelopt.empty()) (void)folder.write("hf_quant_config.json", modelopt);
  return with_fp8_cache(folder.path(), by_head);
}

const Json kTensor =
    Json::parse(R"({"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": true, "dynamic": false})");

TEST(CacheScheme, OfPlainWeightsIsThatOfCompressedTensors) {
  const CacheScheme found = scheme_of(R"({"model_type": "llama", "quantization_config": null})");
  ASSERT_EQ(found.files.size(), 1U);
  const Json& config = found.files.at("config.json");
  EXPECT_EQ(config.at("model_type"), "llama");
  EXPECT_EQ(config.at("quantization_config").at("quant_method"), "compressed-tensors");
  EXPECT_EQ(config.at("quantization_config").at("config_groups"), Json::object());
  EXPECT_EQ(config.at("quantization_config").at("kv_cache_scheme"), kTensor);
  EXPECT_FALSE(found.needs_flag);
  EXPECT_EQ(scheme_of("{}", "", true).scheme.at("strategy"), "attn_head");
}

TEST(CacheScheme, OfQuantisedWeightsIsAddedToTheirs) {
  const auto joined = [](const std::string& own) {
    return scheme_of(R"({"quantization_config": )" + own + "}").files.at("config.json").at("quantization_config");
  };
  const Json compressed =
      joined(R"({"quant_method": "compressed-tensors", "config_groups": {"g": 1}, "kv_cache_scheme": null})");
  EXPECT_EQ(compressed.at("config_groups"), Json::parse(R"({"g": 1})"));
  EXPECT_EQ(compressed.at("kv_cache_scheme"), kTensor);
  EXPECT_EQ(joined(R"({"quant_method": "fp8"})").at("kv_cache_scheme"), kTensor);
  EXPECT_TRUE(scheme_of(R"({"quantization_config": {"quant_method": "fp8"}})").needs_flag);
  EXPECT_EQ(joined(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})").at("kv_cache_scheme"), kTensor);
  EXPECT_EQ(joined(R"({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}})").at("quantization"),
            Json::parse(R"({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"})"));
}

TEST(CacheScheme, OfModelOptIsInItsFile) {
  const CacheScheme found =
      scheme_of("{}", R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": null}})");
  ASSERT_EQ(found.files.size(), 1U);  // config.json stays as it is
  EXPECT_EQ(found.files.at("hf_quant_config.json").at("quantization").at("kv_cache_quant_algo"), "FP8");
}

// The form of Model-Optimizer's pull request 2272 for weights of 16 bits: no quant_algo and no config_groups.
TEST(CacheScheme, OfAMapIsThatOfModelOpt) {
  const auto map_of = [](const Json& map, bool alike) {
    const test::TemporaryDirectory folder;
    (void)folder.write("config.json", R"({"model_type": "llama"})");
    return with_layer_map(folder.path(), map, alike).files.at("config.json").at("quantization_config");
  };
  const Json fp8{{"model.layers.0.self_attn", {{"quant_algo", "FP8"}}}},
      nvfp4{{"model.layers.0.self_attn", {{"quant_algo", "NVFP4"}}}};
  EXPECT_EQ(map_of(fp8, false), Json::parse(R"({"quant_method": "modelopt", "ignore": [],
      "kv_cache_schema_version": 1,
      "kv_cache_quantized_layers": {"model.layers.0.self_attn": {"quant_algo": "FP8"}},
      "kv_cache_quant_algo": "MIXED_PRECISION"})"));
  EXPECT_EQ(map_of(fp8, true).at("kv_cache_scheme"),
            Json::parse(R"({"dynamic": false, "num_bits": 8, "type": "float"})"));
  EXPECT_EQ(map_of(nvfp4, true).at("kv_cache_scheme"), "NVFP4");
  EXPECT_FALSE(map_of(nvfp4, true).contains("kv_cache_quant_algo"));
}

TEST(CacheScheme, OfAMapNeedsWeightsOf16Bits) {
  const auto refused = [](const std::string& config, const std::string& modelopt, const std::string& message) {
    const test::TemporaryDirectory folder;
    (void)folder.write("config.json", config);
    if (!modelopt.empty()) (void)folder.write("hf_quant_config.json", modelopt);
    test::expect_error(ErrorCode::kUnsupported, message,
                       [&] { (void)with_layer_map(folder.path(), Json::object(), false); });
  };
  refused(R"({"quantization_config": {"quant_method": "fp8"}})", "",
          "config.json: /quantization_config: found an object of 1 members, expected weights of 16 bits");
  refused("{}", R"({"quantization": {"quant_algo": "NVFP4"}})", "found a checkpoint of ModelOpt, expected weights");
}

TEST(CacheScheme, RefusesWhatVllmDoesNotTake) {
  const auto refused = [](const std::string& config, const std::string& message, const std::string& modelopt = "",
                          bool by_head = false) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)scheme_of(config, modelopt, by_head); });
  };
  refused(R"({"quantization_config": {"quant_method": "awq"}})",
          "/quantization_config/quant_method: found awq, expected none, compressed-tensors, fp8 or modelopt");
  refused(R"({"quantization_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8}}})",
          "/quantization_config/kv_cache_scheme: found an object of 1 members, expected none");
  refused(R"({"quantization_config": {"quant_method": "fp8"}})", "found fp8 and scales by head", "", true);
  refused("{}", "hf_quant_config.json: /quantization/kv_cache_quant_algo: found \"FP8\", expected none",
          R"({"quantization": {"kv_cache_quant_algo": "FP8"}})");
  test::expect_error(ErrorCode::kInput, "config.json: found an array of 1 elements", [] { (void)scheme_of("[1]"); });
  test::expect_error(ErrorCode::kInput, "/quantization_config",
                     [] { (void)scheme_of(R"({"quantization_config": [1]})"); });
}

}  // namespace
}  // namespace kvs
