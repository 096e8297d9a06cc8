// SPDX-License-Identifier: Apache-2.0
// Storage types by layer, as far as an engine takes them: the search, and what the engines are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "io/tensor_archive.h"
#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LayerTypes : public CalibratePrograms {
 protected:
  LayerTypes() {
    // These weights as half the heads with twice the channels, since blocks of nvfp4 have 16.
    Json model = config("model/config.json");
    model.update({{"num_attention_heads", 3}, {"num_key_value_heads", 1}, {"head_dim", 16}});
    std::ofstream(folder_ / "model/config.json") << model;
  }
  Outcome search(const std::string& engine, const std::string& budget, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--engine", engine, "--budget", budget, "--out", folder_ / "found.json", "--force"});
    return run("kvcalibrate", with_text("store", more));
  }
  void save_config(std::vector<std::string> settings) const {
    settings.insert(settings.begin(),
                    {"--method", "full", "--force", "--save-config", folder_ / "config.json", "--set"});
    const Outcome saved = run("kvcalibrate", with_text("eval", settings));
    ASSERT_EQ(saved.status, 0) << saved.err;
  }
  Outcome to(const std::string& name, const std::string& out, std::vector<std::string> more = {}) const {
    more.emplace_back("--force");
    return export_to(name, "config.json", out, more);
  }
};

TEST_F(LayerTypes, OfAMapOfModelOptAreFoundBesideOneTypeForAll) {
  const Outcome made =
      search("vllm-modelopt", "60%", {"--per-layer-rounds", "1", "--windows", "0:1", "--holdout-windows", "1:"});
  ASSERT_EQ(made.status, 0) << made.err;
  expect_valid("found.json");
  const Json found = config("found.json"), &allocation = found.at("calibration").at("allocation");
  ASSERT_EQ(allocation.at("contenders").size(), 2U);
  for (const Json& contender : allocation.at("contenders")) {
    EXPECT_LE(contender.at("bytes"), 32 * 4 * 32 * 2 * 60 / 100) << contender;  // 32 tokens, four layers, 32 values
    EXPECT_TRUE(contender.contains("ppl"));
  }
  EXPECT_EQ(allocation.at("trials").size(), 2U);  // fp8 and nvfp4: 16 bits are beyond the budget
  EXPECT_EQ(found.at("calibration").at("engine").at("export"), "modelopt-map");
  EXPECT_THAT(made.out, AllOf(HasSubstr("uniform (fp8)"), HasSubstr("runs in vllm-modelopt\n"),
                              HasSubstr("next: kvcalibrate export --to modelopt-map")));
  // The bytes and the loss of both are in one line.
  const bool differ =
      allocation.at("contenders").at(0).at("parameters") != allocation.at("contenders").at(1).at("parameters");
  EXPECT_EQ(made.out.find(" B a token", made.out.find(" B a token") + 1) != std::string::npos, differ) << made.out;
}

TEST_F(LayerTypes, OfVllmAreASkipList) {
  const Outcome made =
      search("vllm", "80%", {"--per-layer-rounds", "1", "--windows", "0:1", "--holdout-windows", "1:"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Json allocation = config("found.json").at("calibration").at("allocation");
  const auto layers =
      std::ranges::find_if(allocation.at("contenders"), [](const Json& one) { return one.at("name") == "layers"; });
  ASSERT_NE(layers, allocation.at("contenders").end());
  EXPECT_TRUE(layers->at("parameters").at("type").is_string());
  EXPECT_LE(layers->at("parameters").at("type_skip_layers").size(), 3U);
  EXPECT_THAT(made.out, HasSubstr("runs in vllm: --kv-cache-dtype "));
}

TEST_F(LayerTypes, AreAMapInConfigJson) {
  save_config({"type=fp8,nvfp4,f16,nvfp4", "scale_k=0.5,0.25,1,0.125", "scale_v=2,1,1,1"});
  const Outcome written = to("modelopt-map", "checkpoint");
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.err, HasSubstr("--kv-cache-dtype auto"));
  EXPECT_EQ(config("checkpoint/config.json").at("quantization_config"), Json::parse(R"({
    "quant_method": "modelopt", "ignore": [], "kv_cache_schema_version": 1,
    "kv_cache_quantized_layers": {"model.layers.0.self_attn": {"quant_algo": "FP8"},
                                  "model.layers.1.self_attn": {"quant_algo": "NVFP4"},
                                  "model.layers.3.self_attn": {"quant_algo": "NVFP4"}},
    "kv_cache_quant_algo": "MIXED_PRECISION"})"));
  const auto archive = open_safetensors(folder_ / "checkpoint/model.safetensors.index.json");
  const StoredTensor* scale = archive->find("model.layers.3.self_attn.k_proj.k_scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->shape, std::vector<std::uint64_t>{1});
  EXPECT_EQ(scale->type_name, "F32");
  std::vector<float> value(1);
  read_rows(*scale, 0, 1, value);
  EXPECT_EQ(value.front(), 0.125F);
  EXPECT_NE(archive->find("model.layers.0.self_attn.v_proj.v_scale"), nullptr);
  EXPECT_EQ(archive->find("model.layers.2.self_attn.k_proj.k_scale"), nullptr);
  // The weights are the model's, so that the config is for the checkpoint, too.
  const Outcome loaded =
      run("kvcalibrate", {"eval", "--model", folder_ / "checkpoint", "--tokens-file", folder_ / "tokens.jsonl",
                          "--window", "32", "--config", folder_ / "config.json"});
  EXPECT_EQ(loaded.status, 0) << loaded.err;
  EXPECT_THAT(loaded.err, HasSubstr("the weights (modelopt) have 16 bits"));
}

TEST_F(LayerTypes, AreAnOverlayThatIsUndone) {
  save_config({"type=fp8,nvfp4,f16,nvfp4"});
  const Outcome written = to("modelopt-map", "overlay", {"--overlay"});
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "overlay/model.safetensors"));
  EXPECT_EQ(config("overlay/kvspectrum-overlay.json").at("scales").at("skipped_layers"), Json({2}));
  const auto before = contents_of(folder_ / "model");
  const Outcome applied =
      run("kvcalibrate", {"overlay", "apply", "--model", folder_ / "model", "--overlay", folder_ / "overlay"});
  ASSERT_EQ(applied.status, 0) << applied.err;
  EXPECT_EQ(config("model/config.json").at("quantization_config").at("quant_method"), "modelopt");
  ASSERT_EQ(run("kvcalibrate", {"overlay", "undo", "--model", folder_ / "model"}).status, 0);
  EXPECT_EQ(difference(before, contents_of(folder_ / "model")), "");
}

TEST_F(LayerTypes, AreAFileOfVllmServe) {
  save_config({"type=nvfp4", "type_skip_layers=0,3"});
  const Outcome written = to("vllm-flags", "vllm.yaml");
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(slurp(folder_ / "vllm.yaml"),
            "# vllm serve MODEL --config THIS_FILE, or with the flags\n"
            "# --kv-cache-dtype nvfp4 --kv-cache-dtype-skip-layers 0 3\n"
            "kv-cache-dtype: [\"nvfp4\"]\n"
            "kv-cache-dtype-skip-layers: [\"0\",\"3\"]\n");
  EXPECT_THAT(written.err, HasSubstr("flags of vLLM: --kv-cache-dtype nvfp4 --kv-cache-dtype-skip-layers 0 3"));
}

TEST_F(LayerTypes, ThatAnEngineReadsOtherwiseAreRefused) {
  const auto expect_refusal = [&](const std::vector<std::string>& settings, const std::string& engine,
                                  const std::string& reason) {
    save_config(settings);
    const Outcome refused = to(engine, "x");
    EXPECT_EQ(refused.status, 4) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
  };
  expect_refusal({"type=fp8,nvfp4,f16,fp8"}, "vllm-flags",
                 "/parameters: found fp8 and nvfp4 in layers, expected one type and 16 bits, in vllm");
  expect_refusal({"type_k=fp8", "type_v=nvfp4"}, "vllm-flags", "found fp8 keys and nvfp4 values");
  expect_refusal({"type_k=fp8", "type_v=nvfp4"}, "modelopt-map", "found fp8 keys and nvfp4 values");
  expect_refusal({"type=none"}, "vllm-flags", "/parameters/type: found 16 bits in all layers");
  expect_refusal({"type=f16"}, "modelopt-map", "found no fp8 or nvfp4, expected it in some layers");
  expect_refusal({"type=int8_per_token_head"}, "modelopt-map", "found int8_per_token_head, expected one of fp8, nvfp4");
}

TEST_F(LayerTypes, OfAnEngineWithoutThemAreRefused) {
  const auto expect_refusal = [&](const Outcome& refused, int status, const std::string& reason) {
    EXPECT_EQ(refused.status, status) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "found.json"));
  };
  expect_refusal(search("sglang", "60%", {"--per-layer-rounds", "1"}), 4,
                 "--per-layer-rounds: found with sglang, which has one type for all layers");
  expect_refusal(search("transformers", "60%"), 4, "--engine: found transformers, which executes");
  expect_refusal(search("vlm", "60%"), 2, "--engine: found 'vlm', expected one of llama.cpp");
  expect_refusal(search("vllm", "10%"), 2, "expected at least");
  expect_refusal(search("ik_llama.cpp", "60%"), 4, "ik_llama.cpp: ");  // heads of 16 channels, blocks of 32
  expect_refusal(run("kvcalibrate", with_text("store", {"--engine", "vllm", "--out", folder_ / "found.json"})), 2,
                 "--engine: needs --budget");
}

}  // namespace
}  // namespace kvs::testing
