// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "io/digest.h"
#include "io/gguf.h"
#include "io/json.h"
#include "io/tensor_archive.h"
#include "tests/cli/calibrate_fixture.h"
#include "tests/cli/letters_tokenizer.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/model/formula_model.h"

namespace kvs::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Configs of the tiny random model: elite.json (disjoint sets, factors of rank 24) and lagkv.json.
class ExportProgram : public CalibratePrograms {
 protected:
  ExportProgram() {
    calibrate("model",
              {"--rank", "24", "--allow-more-parameters", "--disjoint", "on", "--out", folder_ / "elite.json"});
  }
  void calibrate(const std::string& model, std::vector<std::string> more) const {
    more.insert(more.end(), {"--elite", "2"});
    const Outcome made = run("kvcalibrate", with_text("elitekv", more, model));
    ASSERT_EQ(made.status, 0) << made.err;
  }
  Outcome to(const std::string& name, const std::string& out, const std::vector<std::string>& more = {},
             const std::string& from = "elite.json", const std::string& model = "model") const {
    return export_to(name, from, out, more, model);
  }
};

TEST_F(ExportProgram, NamesWhatItCanWrite) {
  const Outcome help = run("kvcalibrate", {"export", "--help"});
  EXPECT_THAT(help.out, HasSubstr("  mha2mla-rank  "));
  const Outcome unknown = to("gguf-llama", "x");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("found 'gguf-llama', expected one of "));
  EXPECT_THAT(unknown.err, HasSubstr("mha2mla-rank"));
}

TEST_F(ExportProgram, WritesTheDecodedValuesOfAQuantisedModel) {
  const std::filesystem::path model = KVS_GOLDEN_DIR "/checkpoints/gptq_w4_order", out = folder_ / "out";
  const Json expected = parse_json(slurp(model / "expected.json"), "expected.json");
  std::string tokens;
  for (int document = 0; document < 4; ++document) {
    tokens += "[" + std::to_string(document);
    for (int token = 1; token < 32; ++token) tokens += ", " + std::to_string((7 * token + document) % 48);
    tokens += "]\n";
  }
  std::ofstream(folder_ / "tokens.jsonl") << tokens;
  const Outcome made =
      run("kvcalibrate", {"elitekv", "--model", model, "--tokens-file", folder_ / "tokens.jsonl", "--window", "32",
                          "--elite", "2", "--rank", "32", "--out", folder_ / "quantised.json"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Outcome written = run("kvcalibrate", {"export", "--to", "elitekv", "--model", model, "--config",
                                              folder_ / "quantised.json", "--out", out});
  ASSERT_EQ(written.status, 0) << written.err;
  const auto archive = open_safetensors(out / "model.safetensors");
  for (const auto& [key, name] : {std::pair("gate", "mlp.gate_proj"), std::pair("down", "mlp.down_proj")}) {
    const StoredTensor* tensor = archive->find("model.layers.0." + std::string(name) + ".weight");
    ASSERT_NE(tensor, nullptr);
    Sha256 digest;
    digest.update(tensor->bytes);
    EXPECT_EQ(tensor->type_name, "F32");
    EXPECT_EQ(digest.finish(), expected.at("sha256").at(key)) << name;
  }
  EXPECT_FALSE(parse_json(slurp(out / "config.json"), "config.json").contains("quantization_config"));
}

TEST_F(ExportProgram, ReplacesAFileByForceAlone) {
  ASSERT_EQ(to("mha2mla-rank", "ranks.pt").status, 0);
  const std::string written = slurp(folder_ / "ranks.pt");
  EXPECT_EQ(to("elitekv-rank", "ranks.pt").status, 7);
  EXPECT_EQ(slurp(folder_ / "ranks.pt"), written);
  EXPECT_EQ(to("elitekv-rank", "ranks.pt", {"--force"}).status, 0);
  EXPECT_NE(slurp(folder_ / "ranks.pt"), written);
}

TEST_F(ExportProgram, NamesASourceThatCannotBeCopied) {
  const std::filesystem::path source = folder_ / "model/merges.txt";
  std::filesystem::create_directory(source);
  const Outcome folder = to("hf-youtu", "out");
  EXPECT_EQ(folder.status, 3);
  EXPECT_EQ(folder.err, "kvcalibrate: error: " + source.string() + ": found a directory, expected a file\n");
  std::filesystem::remove(source);
  ASSERT_EQ(::mkfifo(source.c_str(), 0600), 0);
  const Outcome fifo = to("hf-youtu", "out");
  EXPECT_EQ(fifo.status, 3);
  EXPECT_EQ(fifo.err, "kvcalibrate: error: " + source.string() + ": expected a regular file\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(ExportProgram, SparesItsInputs) {
  for (const std::string out : {"elite.json", "elite.safetensors", "model/ranks.pt"}) {
    const Outcome refused = to("mha2mla-rank", out, {"--force"});
    EXPECT_EQ(refused.status, 2) << out << refused.err;
  }
}

TEST_F(ExportProgram, RefusesAConfigOfAnotherMethodOrModel) {
  const auto words = with_text(
      "eval", {"--method", "lagkv", "--set", "lag=4", "sinks=2", "ratio=0.5", "--save-config", folder_ / "lagkv.json"});
  ASSERT_EQ(run("kvcalibrate", words).status, 0);
  const Outcome method = to("mha2mla-rank", "x", {}, "lagkv.json");
  EXPECT_EQ(method.status, 4);
  EXPECT_THAT(method.err, HasSubstr("found lagkv, expected elitekv"));
  write_tiny_model(folder_ / "other", TinyKind::kBiased);
  EXPECT_EQ(to("mha2mla-rank", "x", {}, "elite.json", "other").status, 7);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

TEST_F(ExportProgram, RefusesSetsOfSomeLayers) {
  calibrate("model", {"--layers", "1,2", "--out", folder_ / "some.json"});
  const Outcome some = to("elitekv-rank", "x", {}, "some.json");
  EXPECT_EQ(some.status, 4);
  EXPECT_THAT(some.err, HasSubstr("found 2 of 4 layers"));
}

TEST_F(ExportProgram, WritesAFolderThatSaysWhatItIs) {
  ASSERT_EQ(to("hf-youtu", "youtu").status, 0);
  const Json record = config("youtu/kvspectrum-export.json");
  EXPECT_EQ(record.at("to"), "hf-youtu");
  EXPECT_EQ(record.at("cache").at("values_per_token_and_layer"), 24 + 8);  // d_ckv and one slot for each of 8 channels
  const Json written = config("youtu/config.json");
  EXPECT_EQ(written.at("kv_lora_rank"), 24);
  EXPECT_EQ(written.at("qk_nope_head_dim"), 8 - 2 * 2);
  EXPECT_EQ(written.at("qk_rope_head_dim"), 8);
  const auto archive = open_safetensors(folder_ / "youtu/model.safetensors");
  const auto shape = [&](const std::string& name) { return archive->find("model.layers.3.self_attn." + name)->shape; };
  EXPECT_THAT(shape("q_proj.weight"), ElementsAre(6U * 12, 48U));
  EXPECT_THAT(shape("kv_a_proj_with_mqa.weight"), ElementsAre(32U, 48U));
  EXPECT_THAT(shape("kv_b_proj.weight"), ElementsAre(6U * 12, 24U));
}

TEST_F(ExportProgram, ReplacesOnlyAFolderOfItsOwn) {
  ASSERT_EQ(to("hf-youtu", "out").status, 0);
  EXPECT_EQ(to("hf-deepseek", "out/").status, 7);
  ASSERT_EQ(to("hf-deepseek", "out/", {"--force", "--matrix-dtype", "bf16"}).status, 0);
  EXPECT_THAT(slurp(folder_ / "out/config.json"), HasSubstr("deepseek_v3"));
  EXPECT_EQ(open_safetensors(folder_ / "out/model.safetensors")->tensors()[0].type_name, "BF16");
  std::ofstream(folder_ / "out/notes.txt") << "mine";
  const Outcome kept = to("hf-youtu", "out", {"--force"});
  EXPECT_EQ(kept.status, 7);
  EXPECT_THAT(kept.err, HasSubstr("found notes.txt, which kvspectrum-export.json does not list as written"));
  EXPECT_EQ(slurp(folder_ / "out/notes.txt"), "mine");
  std::filesystem::create_directory(folder_ / "mine");
  const Outcome spared = to("hf-youtu", "mine", {"--force"});
  EXPECT_EQ(spared.status, 7);
  EXPECT_THAT(spared.err, HasSubstr("without kvspectrum-export.json"));
}

TEST_F(ExportProgram, AFolderKeepsWhatTheTokenizerIs) {
  std::ofstream(folder_ / "model/tokenizer.json") << dump_json(letters_tokenizer());
  std::ofstream(folder_ / "model/chat_template.jinja") << "{{ one }}";
  std::filesystem::create_directory(folder_ / "model/additional_chat_templates");
  std::ofstream(folder_ / "model/additional_chat_templates/rag.jinja") << "{{ two }}";
  ASSERT_EQ(to("hf-youtu", "youtu").status, 0);
  EXPECT_EQ(config("youtu/tokenizer_config.json").at("tokenizer_class"), "PreTrainedTokenizerFast");
  EXPECT_EQ(slurp(folder_ / "youtu/additional_chat_templates/rag.jinja"), "{{ two }}");
  EXPECT_EQ(to("hf-youtu", "youtu", {"--force"}).status, 0);  // its folders are its own
  std::ofstream(folder_ / "model/tokenizer_config.json") << R"({"tokenizer_class": "GPT2TokenizerFast"})";
  ASSERT_EQ(to("hf-deepseek", "deepseek").status, 0);
  EXPECT_EQ(config("deepseek/tokenizer_config.json").at("tokenizer_class"), "GPT2Tokenizer");
}

/// All three that write latent attention refuse what it cannot be.
class LatentAttention : public ExportProgram {
 protected:
  void expect_refusal(const std::string& reason, const std::string& config, const std::string& model = "model",
                      const std::vector<std::string>& more = {}) const {
    for (const std::string name : {"hf-youtu", "hf-deepseek", "gguf-deepseek2"}) {
      const Outcome refused = to(name, "x", more, config, model);
      EXPECT_EQ(refused.status, 4) << name << ": " << refused.err;
      EXPECT_THAT(refused.err, HasSubstr(reason)) << name;
      EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
    }
  }
  /// The tiny model with other members of config.json, and a config for it.
  void write_variant(const std::string& name, const Json& members) const {
    write_tiny_model(folder_ / name);
    Json changed = config(name + "/config.json");
    changed.update(members);
    std::ofstream(folder_ / (name + "/config.json")) << changed;
    calibrate(name, {"--rank", "12", "--disjoint", "on", "--out", folder_ / (name + ".json")});
  }
};

TEST_F(LatentAttention, TakesNoSetsThatShareAFrequency) {
  calibrate("model", {"--rank", "12", "--baseline", "high", "--out", folder_ / "shared.json"});
  expect_refusal("found chunk 0 in heads 0 and 1, expected disjoint sets", "shared.json");
}

TEST_F(LatentAttention, TakesNoMoreFrequenciesThanThereAre) {
  const auto words = with_text("elitekv", {"--elite", "3", "--rank", "8", "--out", folder_ / "many.json"});
  ASSERT_EQ(run("kvcalibrate", words).status, 0);
  expect_refusal("found 6 frequencies in the heads of a layer, expected at most 4", "many.json");
}

TEST_F(LatentAttention, NeedsFactorsOfAllLayers) {
  calibrate("model", {"--disjoint", "on", "--out", folder_ / "sets.json"});
  expect_refusal("found no factors", "sets.json");
  calibrate("model", {"--disjoint", "on", "--rank", "12", "--layers", "0-2", "--out", folder_ / "some.json"});
  expect_refusal("found 3 of 4 layers", "some.json");
}

/// by_layer.json: elite.json (r = 2, d_ckv = 24) with r = 1 and d_ckv = 10 in layer 1.
class LayersOfTheirOwn : public LatentAttention {
 protected:
  LayersOfTheirOwn() {
    const auto words =
        with_text("elitekv", {"--elite", "1", "--rank", "10", "--disjoint", "on", "--out", folder_ / "small.json"});
    EXPECT_EQ(run("kvcalibrate", words).status, 0);
    Json by_layer = config("elite.json");
    const Json small = config("small.json");
    by_layer["parameters"]["r"] = {2, 1, 2, 2};
    by_layer["parameters"]["d_ckv"] = {24, 10, 24, 24};
    for (const char* const place :
         {"/parameters/elite/1", "/calibration/ropelite/error/1", "/calibration/singular_values/1"})
      by_layer[Json::json_pointer(place)] = small.at(Json::json_pointer(place));
    const auto whole = open_safetensors(folder_ / "elite.safetensors"),
               other = open_safetensors(folder_ / "small.safetensors");
    std::vector<test::NamedTensor> tensors;
    for (const StoredTensor& named : whole->tensors()) {
      const StoredTensor& tensor = named.name.starts_with("layers.1.") ? *other->find(named.name) : named;
      tensors.push_back({tensor.name, tensor.shape, std::vector<float>(tensor.rows() * tensor.columns())});
      read_rows(tensor, 0, tensor.rows(), tensors.back().values);
    }
    const std::string bytes = test::safetensors_bytes(tensors);
    std::ofstream(folder_ / "by_layer.safetensors", std::ios::binary) << bytes;
    by_layer["files"][0] = {{"path", "by_layer.safetensors"}, {"sha256", sha256_of(bytes)}};
    std::ofstream(folder_ / "by_layer.json") << by_layer;
  }
};

TEST_F(LayersOfTheirOwn, ArePaddedToTheLargest) {
  ASSERT_EQ(to("hf-youtu", "youtu", {}, "by_layer.json").status, 0);
  const Json stated = config("youtu/config.json");
  EXPECT_EQ(stated.at("kv_lora_rank"), 24);
  EXPECT_EQ(stated.at("qk_nope_head_dim"), 8 - 2 * 1);  // of the layer that rotates least
  const auto archive = open_safetensors(folder_ / "youtu/model.safetensors");
  for (const std::size_t layer : {0U, 1U}) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".self_attn.";
    const StoredTensor &down = *archive->find(prefix + "kv_a_proj_with_mqa.weight"),
                       &up = *archive->find(prefix + "kv_b_proj.weight");
    EXPECT_THAT(down.shape, ElementsAre(24U + 8, 48U));
    EXPECT_THAT(up.shape, ElementsAre(6U * (6 + 8), 24U));
    std::vector<float> row(48);
    read_rows(down, 10, 1, row);
    EXPECT_EQ(std::ranges::all_of(row, [](float value) { return value == 0; }), layer == 1);
  }
  ASSERT_EQ(to("gguf-deepseek2", "x.gguf", {}, "by_layer.json").status, 0);
  const auto file = GgufFile::open(folder_ / "x.gguf");
  EXPECT_THAT(file->find("blk.1.attn_k_b.weight")->shape, ElementsAre(6U, 24U, 6U));
}

TEST_F(LayersOfTheirOwn, AreNotForFormatsWithOneR) {
  for (const std::string name : {"elitekv", "elitekv-rank", "mha2mla-rank"}) {
    const Outcome refused = to(name, "x", {}, "by_layer.json");
    EXPECT_EQ(refused.status, 4) << name;
    EXPECT_THAT(refused.err, HasSubstr("/parameters/r: found 1 and 2, expected one number for all layers")) << name;
  }
}

TEST_F(LatentAttention, IsNotWrittenInHalves) {
  expect_refusal("found f16 for the latent", "elite.json", "model", {"--matrix-dtype", "f16"});
}

TEST_F(LatentAttention, HasNoQkNormNoBiasesAndNoWindows) {
  write_tiny_model(folder_ / "normed", TinyKind::kNormed);
  calibrate("normed", {"--disjoint", "on", "--out", folder_ / "normed.json"});
  expect_refusal("QK-norm", "normed.json", "normed");
  write_tiny_model(folder_ / "biased", TinyKind::kBiased);
  calibrate("biased", {"--disjoint", "on", "--rank", "12", "--out", folder_ / "biased.json"});
  expect_refusal("biases", "biased.json", "biased");
  write_variant("window",
                {{"architectures", {"MistralForCausalLM"}}, {"model_type", "mistral"}, {"sliding_window", 16}});
  expect_refusal("sliding windows", "window.json", "window");
}

TEST_F(LatentAttention, HasNoExperts) {
  const std::string path = KVS_GOLDEN_DIR "/parity/mixtral.json";
  Json golden = parse_json(slurp(path), path);
  golden["config"].erase("sliding_window");
  test::write_formula_model(folder_ / "experts", golden["config"], golden["tensors"]);
  calibrate("experts", {"--rank", "12", "--disjoint", "on", "--out", folder_ / "experts.json"});
  expect_refusal("found experts, for which the target has no place", "experts.json", "experts");
  EXPECT_EQ(to("mha2mla-rank", "x", {}, "experts.json", "experts").status, 0);
}

TEST_F(LatentAttention, StretchesRopeOnlyAsTheTargetDoes) {
  write_variant("yarn", {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}});
  expect_refusal("found RoPE scaling \"yarn\"", "yarn.json", "yarn");
  write_variant("linear", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}}}});
  EXPECT_EQ(to("hf-youtu", "x", {}, "linear.json", "linear").status, 0);
  EXPECT_EQ(to("gguf-deepseek2", "y", {}, "linear.json", "linear").status, 4);
}

TEST_F(LatentAttention, TakesFactorsOfKeysAndValuesApart) {
  calibrate("model", {"--rank", "12", "--factorization", "separate", "--disjoint", "on", "--out", folder_ / "s.json"});
  ASSERT_EQ(to("gguf-deepseek2", "x.gguf", {}, "s.json").status, 0);
  const auto file = GgufFile::open(folder_ / "x.gguf");
  EXPECT_EQ(file->get_unsigned("deepseek2.attention.kv_lora_rank", 100), 12U);
  EXPECT_THAT(file->find("blk.0.attn_k_b.weight")->shape, ElementsAre(6U, 12U, 4U));
  EXPECT_THAT(file->find("blk.0.attn_v_b.weight")->shape, ElementsAre(6U, 8U, 12U));
  EXPECT_EQ(file->get_string("tokenizer.ggml.model"), "none");
}

TEST_F(ExportProgram, WritesEliteKvsOwnTensors) {
  ASSERT_EQ(to("elitekv", "own", {"--matrix-dtype", "f16"}).status, 0);
  const auto archive = open_safetensors(folder_ / "own/model.safetensors");
  const StoredTensor* tensor = archive->find("model.layers.0.self_attn.k_rope_proj.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_THAT(tensor->shape, ElementsAre(2U * 2 * 2, 48U));  // 2 KV heads, r = 2
  EXPECT_EQ(tensor->type_name, "F16");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "own/RoPElite_2.pkl"));
}

}  // namespace
}  // namespace kvs::testing
