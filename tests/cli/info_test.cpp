// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "calibrate/registry.h"
#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class InfoProgram : public ::testing::Test {
 protected:
  InfoProgram() { write_tiny_model(folder_ / "model"); }

  Json info(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"info", folder_ / "model", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run("kvspectrum", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "stdout");
  }
  /// The config with one member changed.
  void set(const std::string& key, const Json& value) const {
    Json config = parse_json(slurp(folder_ / "model/config.json"), "config.json");
    config[key] = value;
    std::ofstream(folder_ / "model/config.json") << config.dump();
  }
  TemporaryFolder folder_;
};

// write_tiny_model: 4 layers, d_model 48, 6 query and 2 KV heads of 8 channels, d_ff 64, 64 tokens, tied head.
constexpr std::size_t kMatrices = 64 * 48 + 4 * (48 * 48 + 2 * 16 * 48 + 48 * 48 + 3 * 64 * 48),
                      kVectors = 48 + 4 * 2 * 48;

TEST_F(InfoProgram, CountsParametersTypesAndCacheBytes) {
  const Json report = info();
  EXPECT_EQ(report.at("architecture"), "llama");
  EXPECT_EQ(report.at("format"), "safetensors");
  EXPECT_EQ(report.at("parameters"), kMatrices + kVectors);
  ASSERT_EQ(report.at("tensor_types").size(), 1U);
  EXPECT_EQ(report.at("tensor_types")[0].at("type"), "F32");
  EXPECT_EQ(report.at("tensor_types")[0].at("bytes"), 4 * (kMatrices + kVectors));
  EXPECT_EQ(report.at("geometry").at("kv_heads"), 2);
  EXPECT_EQ(report.at("geometry").at("tied_head"), true);
  // Keys and values: 2 states x 2 heads x 8 channels x 4 layers = 128 values a token.
  EXPECT_EQ(report.at("kv_cache").at("bytes_per_token"), (Json{{"f32", 512}, {"f16", 256}, {"bf16", 256}}));
  EXPECT_EQ(report.at("kv_cache").at("bytes_per_1024_tokens").at("f16"), 256 * 1024);
}

TEST_F(InfoProgram, TellsRopesWavelengthsAndTheChunksThatDoNotTurnOnce) {
  const Json rope = info().at("rope").at(0);
  EXPECT_EQ(rope.at("type"), "default");
  EXPECT_EQ(rope.at("chunks"), 4);
  // Base 10^4, 8 channels: frequencies 1, 1/10, 1/100, 1/1000; the last has 6283 tokens a turn, the third 628, and the
  // context is 512.
  EXPECT_NEAR(rope.at("shortest_wavelength").get<double>(), 6.2832, 1e-4);
  EXPECT_NEAR(rope.at("longest_wavelength").get<double>(), 6283.2, 0.1);
  EXPECT_EQ(rope.at("chunks_below_one_turn"), 2);
}

TEST_F(InfoProgram, MemoryIsWeightsAndWhatTheWindowNeeds) {
  const Json small = info({"--window", "64"}).at("memory"), large = info({"--window", "128"}).at("memory");
  // The tied head is packed in addition to the embedding; vectors stay f32.
  const std::size_t weights = kMatrices + 64 * 48;
  EXPECT_EQ(small.at("f32").at("weights"), 4 * weights + 4 * kVectors);
  EXPECT_EQ(small.at("bf16").at("weights"), 2 * weights + 4 * kVectors);
  // 64 tokens more: per token 2 x 48 + 2 x (6 + 2 x 2) x 8 + 3 x 64 = 448 numbers of f32.
  EXPECT_EQ(large.at("f32").at("capture").get<std::size_t>() - small.at("f32").at("capture").get<std::size_t>(),
            64 * 448 * 4);
  // RoPElite's sums in double: 4 layers x 6 heads x 4 chunks squared; with --rank by attention, 3 x 4 features squared,
  // and moments of 48 x 48. Factorising a layer, 32 rows of rank 19: W_q, W_v, W_o (48 + 16 + 48 rows) and the factors
  // in f32, the rows, the moment and four times the rows in double.
  const Json& f32 = small.at("f32");
  const auto held = [&](const char* command) {
    return f32.at(command).get<std::size_t>() - f32.at("capture").get<std::size_t>();
  };
  EXPECT_EQ(held("elitekv"), 8 * 4 * 6 * 4 * 4);
  EXPECT_EQ(held("elitekv --rank"), 8 * 4 * (6 * 12 * 12 + 48 * 48) + 4 * (112 * 48 + (48 + 32) * 19 + 48 * 48) +
                                        8 * (32 * 48 + 48 * 48 + 4 * 32 * 48));
}

TEST_F(InfoProgram, ReadsNoWeights) {
  std::fstream file(folder_ / "model/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4096, std::ios::end);
  file << std::string(4096, '\xff');  // NaN, which any command that loads them refuses with status 5
  file.close();
  EXPECT_EQ(info().at("parameters"), kMatrices + kVectors);
}

TEST_F(InfoProgram, ATokenizerThatCannotBeUsedIsSaidAndIsNoError) {
  EXPECT_THAT(info().at("tokenizer").at("error").get<std::string>(), HasSubstr("tokenizer.json: is missing"));
  const Outcome text = run("kvspectrum", {"info", folder_ / "model"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("cannot be used, --tokens-file can"));
  EXPECT_THAT(text.out, HasSubstr("4 layers, d_model 48, d_ff 64, 6 query and 2 KV heads of 8 channels"));
}

TEST_F(InfoProgram, AMethodThatDoesNotApplySaysWhyAndItsCommandRefusesInTheSameWords) {
  const Json methods = info().at("methods");
  EXPECT_EQ(methods.size(), all_methods().size());
  for (const Json& row : methods) EXPECT_TRUE(row.at("applies")) << row.at("method");
  // These tensors as heads of 2 channels: one chunk, which 8 KV heads cannot share.
  set("head_dim", 2);
  set("num_attention_heads", 24);
  set("num_key_value_heads", 8);
  std::string reason;
  const Json report = info();
  EXPECT_EQ(report.at("rope").at(0).at("chunks"), 1);
  for (const Json& row : report.at("methods"))
    if (row.at("method") == "elitekv") reason = row.at("notes").back().get<std::string>();
  EXPECT_THAT(reason, HasSubstr("found 8 KV heads and 1 RoPE chunks"));
  write_tokens_file(folder_ / "tokens.jsonl", 1, 40);
  const Outcome refused =
      run("kvcalibrate", {"elitekv", "--model", folder_ / "model", "--tokens-file", folder_ / "tokens.jsonl",
                          "--window", "32", "--elite", "1", "--disjoint", "on", "--out", folder_ / "elite.json"});
  EXPECT_EQ(refused.status, 4);
  EXPECT_THAT(refused.err, HasSubstr(reason.substr(reason.find("found"))));
}

TEST_F(InfoProgram, WhatCannotBeReadEndsWithItsStatus) {
  EXPECT_EQ(run("kvspectrum", {"info"}).status, 2);
  EXPECT_EQ(run("kvspectrum", {"info", folder_ / "model", "--window", "1"}).status, 2);
  EXPECT_EQ(run("kvspectrum", {"info", folder_ / "absent"}).status, 3);
  set("architectures", {"MambaForCausalLM"});
  set("model_type", "mamba");
  const Outcome unknown = run("kvspectrum", {"info", folder_ / "model"});
  EXPECT_EQ(unknown.status, 4);
  EXPECT_THAT(unknown.err, HasSubstr("MambaForCausalLM"));
  EXPECT_EQ(unknown.out, "");
}

}  // namespace
}  // namespace kvs::testing
