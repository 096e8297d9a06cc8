// SPDX-License-Identifier: Apache-2.0
// config.json: N53 to N66.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tensor_file.h"

namespace kvs::testing {
namespace {

constexpr const char* kConfig = "model/config.json";

/// The config with `"KEY": TEXT` in place of the key's value; the text need not be JSON.
std::string with_text_at(const std::string& config, const std::string& key, const std::string& text) {
  const std::string name = "\"" + key + "\":";
  const std::size_t at = config.find(name) + name.size();
  return config.substr(0, at) + " " + text + config.substr(config.find_first_of(",}\n", at));
}

TEST_F(Catalogue, N53_MissingAFolderEmptyOrHuge) {
  std::filesystem::remove(folder_ / kConfig);
  expect_model_refused(3, {kConfig, "is missing"});
  std::filesystem::create_directory(folder_ / kConfig);
  expect_model_refused(3, {kConfig, "directory"});
  std::filesystem::remove(folder_ / kConfig);
  write(kConfig, "");
  expect_model_refused(3, {kConfig});
  write(kConfig, "{}" + std::string(1 << 20, ' '));
  expect_model_refused(3, {kConfig, "1048576"});
}

TEST_F(Catalogue, N54_Depth) {
  write(kConfig, R"({"x":)" + std::string(100000, '[') + std::string(100000, ']') + "}");
  expect_model_refused(3, {kConfig, "byte", "64 levels"});
}

TEST_F(Catalogue, N55_ADuplicateKey) {
  const std::string sound = slurp(folder_ / kConfig);
  write(kConfig, sound.substr(0, sound.rfind('}')) + ", \"hidden_size\": 49}");
  expect_model_refused(3, {kConfig, "line", "column", "\"hidden_size\"", "48", "49"});
}

TEST_F(Catalogue, N56_NumbersThatAreNoCounts) {
  const std::string sound = slurp(folder_ / kConfig);
  for (const char* value : {"30.5", "\"30\"", "true", "-1", "8589934592"}) {
    write(kConfig, with_text_at(sound, "num_hidden_layers", value));
    expect_model_refused(3, {kConfig, "/num_hidden_layers", std::string("found ") + value});
  }
  for (const char* value : {"1e400", "1e999999"}) {
    write(kConfig, with_text_at(sound, "num_hidden_layers", value));
    expect_model_refused(3, {kConfig, "line 2, column 7", value});
  }
}

TEST_F(Catalogue, N57_ConstantsThatCannotBe) {
  const std::string sound = slurp(folder_ / kConfig);
  for (const auto& [key, value] :
       {std::pair{"rope_theta", "0"}, std::pair{"rope_theta", "-1"}, std::pair{"rms_norm_eps", "0"}}) {
    write(kConfig, with_text_at(sound, key, value));
    expect_model_refused(3, {kConfig, std::string("/") + key, std::string("found ") + value});
  }
  write(kConfig, with_text_at(sound, "rope_theta", "NaN"));
  expect_model_refused(3, {kConfig, "/rope_theta: found nan, expected a finite number"});
  write(kConfig, with_text_at(sound, "rms_norm_eps", "Infinity"));
  expect_model_refused(3, {kConfig, "/rms_norm_eps: found inf, expected a finite number"});
}

TEST_F(Catalogue, N58_AKeyIsMissingOrTheClassUnknown) {
  const Json sound = parse_json(slurp(folder_ / kConfig), "config");
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size"}) {
    Json config = sound;
    config.erase(key);
    write(kConfig, config.dump());
    expect_model_refused(3, {kConfig, key});
  }
  Json config = sound;
  config["architectures"] = {"MambaForCausalLM"};
  config["model_type"] = "mamba";
  write(kConfig, config.dump());
  expect_model_refused(4, {kConfig, "MambaForCausalLM", "LlamaForCausalLM"});
}

TEST_F(Catalogue, N59_HeadsThatDoNotDivide) {
  const auto refuse = [&](int heads, int kv_heads, Parts parts) {
    edit_json(kConfig, [&](Json& config) {
      config["num_attention_heads"] = heads;
      config["num_key_value_heads"] = kv_heads;
    });
    expect_model_refused(3, parts);
  };
  refuse(9, 2, {kConfig, "num_attention_heads 9", "num_key_value_heads 2"});
  refuse(6, 0, {kConfig, "num_key_value_heads"});
  refuse(6, 12, {kConfig, "num_attention_heads 6", "num_key_value_heads 12"});
}

TEST_F(Catalogue, N60_HeadSizes) {
  edit_json(kConfig, [](Json& config) { config["head_dim"] = 7; });
  expect_model_refused(3, {kConfig, "head_dim 7"});
  edit_json(kConfig, [](Json& config) {
    config.erase("head_dim");
    config["hidden_size"] = 50;
  });
  expect_model_refused(3, {kConfig, "hidden_size 50", "num_attention_heads 6"});
}

TEST_F(Catalogue, N61_HeadsNeedNotFillTheModelsWidth) {
  // Two of the six query heads are removed: 4 x 8 = 32 channels in a model of 48.
  const TensorFile whole(folder_ / "model/model.safetensors");
  TensorFile cut = whole;
  cut.data.clear();
  for (auto& [name, entry] : cut.header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = entry["data_offsets"][0];
    std::size_t bytes = entry["data_offsets"][1].get<std::size_t>() - begin;
    if (name.find("q_proj") != std::string::npos) entry["shape"] = {32, 48};
    if (name.find("o_proj") != std::string::npos) entry["shape"] = {48, 32};
    if (entry["shape"] == Json{32, 48} || entry["shape"] == Json{48, 32}) bytes = std::size_t{32} * 48 * 4;
    entry["data_offsets"] = {cut.data.size(), cut.data.size() + bytes};
    cut.data += whole.data.substr(begin, bytes);
  }
  write("model/model.safetensors", cut.bytes());
  edit_json(kConfig, [](Json& config) { config["num_attention_heads"] = 4; });
  expect_model_taken();
}

TEST_F(Catalogue, N62_RopeThatIsNotHandled) {
  const Json sound = parse_json(slurp(folder_ / kConfig), "config");
  Json config = sound;
  config["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 2.0}};
  write(kConfig, config.dump());
  expect_model_refused(4, {kConfig, "rope_scaling", "spiral"});
  config = sound;
  config["partial_rotary_factor"] = 0.5;
  write(kConfig, config.dump());
  expect_model_refused(4, {kConfig, "partial_rotary_factor"});
}

TEST_F(Catalogue, N63_FewerLayersThanTheWeightsHave) {
  edit_json(kConfig, [](Json& config) { config["num_hidden_layers"] = 5; });
  expect_model_refused(3, {"model.safetensors", "9 tensors are missing", "first 4 whole"});
  edit_json(kConfig, [](Json& config) { config["num_hidden_layers"] = 3; });
  Words words = capture_words();
  std::erase(words, "--quiet");
  EXPECT_THAT(expect_done("kvspectrum", words).err,
              ::testing::HasSubstr("skipped 9 tensors of: layers beyond num_hidden_layers"));
}

TEST_F(Catalogue, N64_VocabularyAndEmbeddingDiffer) {
  edit_json(kConfig, [](Json& config) { config["vocab_size"] = 65; });
  expect_model_refused(3, {"model.embed_tokens.weight", "[64, 48]", "vocab_size"});
}

TEST_F(Catalogue, N65_TextThatIsNotOneObject) {
  const std::string sound = slurp(folder_ / kConfig);
  std::string wide("\xff\xfe");
  for (const char letter : sound) wide += {letter, '\0'};
  for (const std::string& text : {sound + "{}", wide, sound.substr(0, sound.find("Llama"))}) {
    write(kConfig, text);
    expect_model_refused(3, {kConfig, "line", "column"});
  }
}

TEST_F(Catalogue, N66_CodeOfTheModelsOwnIsNoted) {
  edit_json(kConfig, [](Json& config) { config["auto_map"] = {{"AutoModel", "evil.Model"}}; });
  write("model/evil.py", "raise SystemExit('run')");
  Words words = capture_words();
  std::erase(words, "--quiet");
  EXPECT_THAT(expect_done("kvspectrum", words).err, ::testing::HasSubstr("auto_map"));
}

}  // namespace
}  // namespace kvs::testing
