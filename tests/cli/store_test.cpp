// SPDX-License-Identifier: Apache-2.0
// Caches that engines have themselves: calibrated scales, and settings as the engines read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "io/python_json.h"
#include "io/tensor_archive.h"
#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class StoreProgram : public CalibratePrograms {
 protected:
  void on_text(const std::string& command, const std::vector<std::string>& more) const {
    const Outcome made = run("kvcalibrate", with_text(command, more));
    ASSERT_EQ(made.status, 0) << made.err;
  }
  void save_config(const std::string& method, const std::vector<std::string>& settings) const {
    std::vector<std::string> more{"--method", method, "--force", "--save-config", folder_ / "config.json", "--set"};
    more.insert(more.end(), settings.begin(), settings.end());
    on_text("eval", more);
  }
  Outcome to(const std::string& name, const std::string& from, const std::string& out) const {
    return export_to(name, from, out, {"--force"});
  }
};

TEST_F(StoreProgram, ScalesOfEachHeadGoIntoACheckpointForVllm) {
  on_text("store", {"--per", "head", "--scale", "max", "--out", folder_ / "fp8.json"});
  const Json parameters = config("fp8.json").at("parameters"), largest = config("fp8.json").at("calibration");
  ASSERT_EQ(parameters.at("scale_k").size(), 4U);  // layers
  const auto scales = parameters.at("scale_k").at(3).get<std::vector<double>>();
  ASSERT_EQ(scales.size(), 2U);  // KV heads
  EXPECT_NEAR(std::max(scales[0], scales[1]) * 448, largest.at("largest_k").at(3), 1e-6);
  on_text("eval", {"--config", folder_ / "fp8.json"});

  const Outcome written = to("vllm-fp8", "fp8.json", "checkpoint");
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.err, HasSubstr("FlashAttention"));
  const Json scheme = config("checkpoint/config.json").at("quantization_config").at("kv_cache_scheme");
  EXPECT_EQ(scheme, Json::parse(R"({"num_bits": 8, "type": "float", "strategy": "attn_head", "symmetric": true,
                                    "dynamic": false})"));
  const auto archive = open_safetensors(folder_ / "checkpoint/model.safetensors.index.json");
  const StoredTensor* scale = archive->find("model.layers.3.self_attn.k_scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->shape, (std::vector<std::uint64_t>{2, 1, 1}));
  EXPECT_EQ(scale->type_name, archive->find("model.layers.3.self_attn.o_proj.weight")->type_name);
  std::vector<float> values(2);
  read_rows(*scale, 0, 2, values);
  EXPECT_NEAR(values[1], scales[1], scales[1] / 256);
  // The weights are the model's, so that the config is for the checkpoint, too.
  const Outcome loaded =
      run("kvcalibrate", {"eval", "--model", folder_ / "checkpoint", "--tokens-file", folder_ / "tokens.jsonl",
                          "--window", "32", "--config", folder_ / "fp8.json", "--quiet"});
  EXPECT_EQ(loaded.status, 0) << loaded.err;
}

TEST_F(StoreProgram, PythonsWordsForNumbersStayInTheFilesOfAModel) {
  for (const char* name : {"config.json", "generation_config.json", "tokenizer_config.json"}) {
    const std::filesystem::path path = folder_ / "model" / name;
    Json file = std::filesystem::exists(path) ? config("model/" + std::string(name)) : Json::object();
    file["of_training"] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
    std::ofstream(path) << dump_python_json(file);
  }
  const auto expect_words = [&](const std::string& file) {
    EXPECT_THAT(slurp(folder_ / file), HasSubstr("\"of_training\": [\n    Infinity,\n    NaN\n  ]")) << file;
  };
  on_text("store", {"--scale", "max", "--out", folder_ / "fp8.json"});
  const Outcome written = to("vllm-fp8", "fp8.json", "checkpoint");
  ASSERT_EQ(written.status, 0) << written.err;
  expect_words("checkpoint/config.json");
  const Outcome generation = to("hf-generation", "fp8.json", "generation.json");
  ASSERT_EQ(generation.status, 0) << generation.err;
  expect_words("generation.json");
}

TEST_F(StoreProgram, OneScaleForALayerIsAVectorOfOne) {
  on_text("store", {"--scale", "ema", "--out", folder_ / "fp8.json"});
  ASSERT_EQ(to("vllm-fp8", "fp8.json", "checkpoint").status, 0);
  const auto archive = open_safetensors(folder_ / "checkpoint/model.safetensors.index.json");
  EXPECT_EQ(archive->find("model.layers.0.self_attn.v_scale")->shape, std::vector<std::uint64_t>{1});
  EXPECT_EQ(config("checkpoint/config.json").at("quantization_config").at("kv_cache_scheme").at("strategy"), "tensor");
  // An index of files that are not there is none of the model's.
  std::ofstream(folder_ / "model/model.safetensors.index.json")
      << R"({"metadata": {}, "weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}})";
  ASSERT_EQ(to("vllm-fp8", "fp8.json", "indexed").status, 0);
  for (const auto& [tensor, file] : config("indexed/model.safetensors.index.json").at("weight_map").items())
    EXPECT_TRUE(std::filesystem::exists(folder_ / "indexed" / file.get<std::string>())) << tensor;
  // A checkpoint has one scheme.
  std::filesystem::rename(folder_ / "model", folder_ / "plain");
  std::filesystem::rename(folder_ / "checkpoint", folder_ / "model");
  const Outcome twice = to("vllm-fp8", "fp8.json", "again");
  EXPECT_EQ(twice.status, 4);
  EXPECT_THAT(twice.err,
              HasSubstr("/quantization_config/kv_cache_scheme: found an object of 5 members, expected none"));
  std::filesystem::rename(folder_ / "model", folder_ / "scaled");
  std::filesystem::rename(folder_ / "plain", folder_ / "model");
}

TEST_F(StoreProgram, TheRuleOfLeastDivergenceGivesTheScales) {
  // These weights as half the heads with twice the channels, since blocks of nvfp4 have 16.
  Json model = config("model/config.json");
  model.update({{"num_attention_heads", 3}, {"num_key_value_heads", 1}, {"head_dim", 16}});
  std::ofstream(folder_ / "model/config.json") << model;
  on_text("store", {"--types", "fp8/nvfp4", "--out", folder_ / "best.json"});
  const Json best = config("best.json"), rules = best.at("calibration").at("rules");
  EXPECT_EQ(best.at("parameters").at("type_k"), "fp8");
  EXPECT_EQ(best.at("parameters").at("type_v"), "nvfp4");
  ASSERT_GE(rules.size(), 2U);
  EXPECT_EQ(rules.at(0).at("scale"), "max");
  EXPECT_EQ(rules.at(0).at("saturated"), 0);
  double least = rules.at(0).at("kl");
  for (const Json& rule : rules) least = std::min(least, rule.at("kl").get<double>());
  for (const Json& rule : rules) {
    if (rule.at("scale") == best.at("calibration").at("scale")) {
      EXPECT_EQ(rule.at("kl"), least);
    }
  }
  // `eval` of the config finds the same divergence.
  EXPECT_NEAR(evaluated({"--config", folder_ / "best.json", "--reference", "full"}).at("kl").get<double>(), least,
              1e-6 + 1e-3 * least);
  // The scale of nvfp4 is the largest magnitude over 6 · 448.
  on_text("store", {"--types", "nvfp4", "--scale", "max", "--out", folder_ / "nvfp4.json"});
  const Json made = config("nvfp4.json");
  EXPECT_NEAR(made.at("parameters").at("scale_v").at(1).get<double>() * 2688,
              made.at("calibration").at("largest_v").at(1).get<double>(), 1e-6);
  EXPECT_EQ(made.at("parameters").at("type"), "nvfp4");
  expect_valid("nvfp4.json");
}

TEST_F(StoreProgram, SglangGetsOneScaleForKeysAndValuesOfEachRank) {
  on_text("store", {"--scale", "max", "--per", "pair", "--out", folder_ / "pair.json"});
  const Outcome written = export_to("sglang-scales", "pair.json", "scales.json", {"--tensor-parallel", "2", "--force"});
  ASSERT_EQ(written.status, 0) << written.err;
  const Json file = config("scales.json"), pair = config("pair.json");
  EXPECT_EQ(file.at("model_type"), config("model/config.json").at("model_type"));
  EXPECT_EQ(file.at("kv_cache").at("dtype"), "float8_e4m3fn");
  const Json& ranks = file.at("kv_cache").at("scaling_factor");
  ASSERT_EQ(ranks.size(), 2U);
  ASSERT_EQ(ranks.at("1").size(), 4U);  // layers
  EXPECT_EQ(ranks.at("0"), ranks.at("1"));
  const double largest = std::max(pair.at("calibration").at("largest_k").at(3).get<double>(),
                                  pair.at("calibration").at("largest_v").at(3).get<double>());
  EXPECT_NEAR(ranks.at("0").at("3").get<double>() * 448, largest, 1e-6 * largest);
  on_text("store", {"--scale", "max", "--out", folder_ / "apart.json"});
  const Outcome apart = to("sglang-scales", "apart.json", "x");
  EXPECT_EQ(apart.status, 4);
  EXPECT_THAT(apart.err, HasSubstr("/parameters/scale_v: found another than of keys in layer 0"));
  const Outcome two = run("kvcalibrate", with_text("store", {"--types", "fp8/nvfp4", "--per", "pair", "--out", "x"}));
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.err, HasSubstr("--per: found pair with fp8/nvfp4, expected one type"));
}

TEST_F(StoreProgram, TransformersTakesKiviAndFp8) {
  save_config("kivi", {"bits=2", "group=8", "residual=16"});
  ASSERT_EQ(to("hf-generation", "config.json", "generation.json").status, 0);
  EXPECT_EQ(config("generation.json").at("cache_config"),
            Json::parse(R"({"backend": "quanto", "nbits": 2, "axis_key": 0, "axis_value": 0, "q_group_size": 8,
                            "residual_length": 16})"));
  save_config("full", {"type=fp8"});
  ASSERT_EQ(to("hf-generation", "config.json", "generation.json").status, 0);
  EXPECT_EQ(config("generation.json").at("cache_config"), Json::parse(R"({"backend": "fp8"})"));
}

TEST_F(StoreProgram, TheTextConfigOfACompositeStatesSpecialTokens) {
  Json text = config("model/config.json");
  text["eos_token_id"] = {5, 6};
  text["bos_token_id"] = 7;
  const Json composite{{"model_type", "mistral3"},
                       {"tie_word_embeddings", text.value("tie_word_embeddings", false)},
                       {"bos_token_id", 3},
                       {"text_config", text}};
  std::ofstream(folder_ / "model/config.json") << composite;
  save_config("full", {"type=fp8"});
  ASSERT_EQ(to("hf-generation", "config.json", "generation.json").status, 0);
  EXPECT_EQ(config("generation.json").at("eos_token_id"), Json({5, 6}));
  EXPECT_EQ(config("generation.json").at("bos_token_id"), 3);
}

TEST_F(StoreProgram, WhatAnEngineDoesNotHaveIsRefused) {
  const auto expect_refusal = [&](const std::string& engine, const std::string& reason) {
    const Outcome refused = to(engine, "config.json", "x");
    EXPECT_EQ(refused.status, 4) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
  };
  save_config("full", {"type=f16,bf16,f16,f16"});
  expect_refusal("llama-cpp", "/parameters/type: found another for each layer");
  save_config("full", {"type=int8_per_token_head"});
  expect_refusal("llama-cpp", "found int8_per_token_head, expected a type of llama.cpp: f16, ");
  expect_refusal("vllm-fp8", "/parameters/type: found layer 0 with another kind, expected fp8 of keys and values");
  save_config("lagkv", {"lag=8", "sinks=2"});
  expect_refusal("hf-generation", "/method: found lagkv, expected kivi");
  save_config("full", {"type=f16"});
  expect_refusal("llama-cpp", "found a Hugging Face folder, expected the GGUF file");
}

}  // namespace
}  // namespace kvs::testing
