// Caches that engines have themselves: calibrated scales, and settings as the engines read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/json.h"
#include "io/tensor_archive.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class StoreProgram : public ::testing::Test {
 protected:
  StoreProgram() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 2, 40);
  }
  Outcome on_text(const std::string& command, const std::vector<std::string>& more) const {
    std::vector<std::string> words{command,    "--model", folder_ / "model", "--tokens-file", folder_ / "tokens.jsonl",
                                   "--window", "32",      "--quiet",         "--threads",     "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run("kvcalibrate", words);
  }
  void save_config(const std::string& method, const std::vector<std::string>& settings) const {
    std::vector<std::string> more{"--method", method, "--force", "--save-config", folder_ / "config.json", "--set"};
    more.insert(more.end(), settings.begin(), settings.end());
    const Outcome saved = on_text("eval", more);
    ASSERT_EQ(saved.status, 0) << saved.err;
  }
  Outcome to(const std::string& name, const std::string& config, const std::string& out) const {
    return run("kvcalibrate", {"export", "--to", name, "--config", folder_ / config, "--model", folder_ / "model",
                               "--out", folder_ / out, "--force"});
  }
  Json read(const std::string& name) const { return parse_json(slurp(folder_ / name), name); }

  TemporaryFolder folder_;
};

TEST_F(StoreProgram, ScalesOfEachHeadGoIntoACheckpointForVllm) {
  ASSERT_EQ(on_text("store", {"--per", "head", "--out", folder_ / "fp8.json"}).status, 0);
  const Json parameters = read("fp8.json").at("parameters"), largest = read("fp8.json").at("calibration");
  ASSERT_EQ(parameters.at("scale_k").size(), 4U);  // layers
  const auto scales = parameters.at("scale_k").at(3).get<std::vector<double>>();
  ASSERT_EQ(scales.size(), 2U);  // KV heads
  EXPECT_NEAR(std::max(scales[0], scales[1]) * 448, largest.at("largest_k").at(3), 1e-6);
  const Outcome used = on_text("eval", {"--config", folder_ / "fp8.json"});
  EXPECT_EQ(used.status, 0) << used.err;

  const Outcome written = to("vllm-fp8", "fp8.json", "checkpoint");
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.err, HasSubstr("FlashAttention"));
  const Json scheme = read("checkpoint/config.json").at("quantization_config").at("kv_cache_scheme");
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

TEST_F(StoreProgram, OneScaleForALayerIsAVectorOfOne) {
  ASSERT_EQ(on_text("store", {"--fp8-scale", "ema", "--out", folder_ / "fp8.json"}).status, 0);
  ASSERT_EQ(to("vllm-fp8", "fp8.json", "checkpoint").status, 0);
  const auto archive = open_safetensors(folder_ / "checkpoint/model.safetensors.index.json");
  EXPECT_EQ(archive->find("model.layers.0.self_attn.v_scale")->shape, std::vector<std::uint64_t>{1});
  EXPECT_EQ(read("checkpoint/config.json").at("quantization_config").at("kv_cache_scheme").at("strategy"), "tensor");
  // A checkpoint has one scheme.
  std::filesystem::rename(folder_ / "model", folder_ / "plain");
  std::filesystem::rename(folder_ / "checkpoint", folder_ / "model");
  const Outcome twice = to("vllm-fp8", "fp8.json", "again");
  EXPECT_EQ(twice.status, 4);
  EXPECT_THAT(twice.err, HasSubstr("/quantization_config: found one, expected none"));
}

TEST_F(StoreProgram, TransformersTakesKiviAndFp8) {
  save_config("kivi", {"bits=2", "group=8", "residual=16"});
  ASSERT_EQ(to("hf-generation", "config.json", "generation.json").status, 0);
  EXPECT_EQ(read("generation.json").at("cache_config"),
            Json::parse(R"({"backend": "quanto", "nbits": 2, "axis_key": 0, "axis_value": 0, "q_group_size": 8,
                            "residual_length": 16})"));
  save_config("full", {"store=fp8"});
  ASSERT_EQ(to("hf-generation", "config.json", "generation.json").status, 0);
  EXPECT_EQ(read("generation.json").at("cache_config"), Json::parse(R"({"backend": "fp8"})"));
}

TEST_F(StoreProgram, WhatAnEngineDoesNotHaveIsRefused) {
  save_config("full", {"store=f16,bf16,f16,f16"});
  const Outcome layers = to("llama-cpp", "config.json", "x");
  EXPECT_EQ(layers.status, 4);
  EXPECT_THAT(layers.err, HasSubstr("/parameters/store: found another for each layer"));
  save_config("full", {"store=int8_per_token_head"});
  const Outcome kind = to("llama-cpp", "config.json", "x");
  EXPECT_EQ(kind.status, 4);
  EXPECT_THAT(kind.err, HasSubstr("found int8_per_token_head, expected a type of llama.cpp: f16, "));
  EXPECT_EQ(to("vllm-fp8", "config.json", "x").status, 4);
  save_config("lagkv", {"lag=8", "sinks=2"});
  const Outcome method = to("hf-generation", "config.json", "x");
  EXPECT_EQ(method.status, 4);
  EXPECT_THAT(method.err, HasSubstr("/method: found lagkv, expected kivi"));
  save_config("full", {"store=f16"});
  const Outcome folder = to("llama-cpp", "config.json", "x");
  EXPECT_EQ(folder.status, 4);
  EXPECT_THAT(folder.err, HasSubstr("found a Hugging Face folder, expected the GGUF file"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

}  // namespace
}  // namespace kvs::testing
