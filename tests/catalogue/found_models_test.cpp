// SPDX-License-Identifier: Apache-2.0
// Models whose files are well-formed, with contents that cannot be valid: N143 to N150.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tensor_file.h"
#include "tests/catalogue/tiny_gguf.h"
#include "tests/io/gguf_builder.h"

namespace kvs::testing {
namespace {

using namespace test::gguf_file;

TEST_F(Catalogue, N143_FactorsOfFrequencies) {
  for (const float factor : {0.0F, -1.0F, std::nanf(""), HUGE_VALF}) {
    TinyGguf model;
    model.tensors.push_back({"rope_freqs.weight", {4}, kTypeF32, raw(factor) + raw(1.0F) + raw(1.0F) + raw(1.0F)});
    write("m.gguf", model.bytes());
    expect_model_refused(3, {"m.gguf", "rope_freqs.weight", "expected numbers above 0"}, "m.gguf");
  }
  TinyGguf model;
  model.tensors.push_back({"rope_freqs.weight", {5}, kTypeF32, std::string(20, '\0')});
  write("m.gguf", model.bytes());
  expect_model_refused(3, {"m.gguf", "rope_freqs.weight", "expected 4 floats"}, "m.gguf");
}

TEST_F(Catalogue, N144_TokensTwiceOrThatAreNone) {
  write("text.txt", std::string(40, 'a'));
  Words words = text_words({folder_ / "text.txt"});
  words[2] = folder_ / "m.gguf";
  TinyGguf model;
  std::vector<std::string> tokens = tiny_vocabulary();
  tokens[260] = "a";
  model.set_key("tokenizer.ggml.tokens", kArray, array_of_texts(tokens));
  write("m.gguf", model.bytes());
  expect_refused("kvspectrum", words, 3, {"m.gguf", "token 260 \"a\" has the text of an earlier token"});
  model = TinyGguf();
  model.set_key("tokenizer.ggml.bos_token_id", kU32, u32(264));
  write("m.gguf", model.bytes());
  expect_done("kvspectrum", words);  // as in llama.cpp, with a note
  model = TinyGguf();
  model.set_key("tokenizer.ggml.model", kString, text("mystery"));
  write("m.gguf", model.bytes());
  expect_refused("kvspectrum", words, 4, {"m.gguf", "tokenizer.ggml.model", "mystery"});
}

TEST_F(Catalogue, N145_AnAdapter) {
  TinyGguf model;
  model.set_key("general.type", kString, text("adapter"));
  write("m.gguf", model.bytes());
  expect_model_refused(4, {"m.gguf", "general.type", "merge the adapter"}, "m.gguf");
}

TEST_F(Catalogue, N146_KeysOfAnotherTypeOrRange) {
  const auto refuse = [&](const char* key, std::uint32_t type, const std::string& value, std::string_view part) {
    TinyGguf model;
    model.set_key(key, type, value);
    write("m.gguf", model.bytes());
    expect_model_refused(3, {"m.gguf", key, part}, "m.gguf");
  };
  refuse("llama.block_count", kString, text("2"), "found \"2\", expected an integer");
  refuse("llama.block_count", kI32, u32(~0U), "found -1");
  refuse("llama.rope.freq_base", kF32, raw(std::nanf("")), "nan");
  refuse("llama.rope.freq_base", kF32, raw(0.0F), "found 0");
  refuse("llama.context_length", kU32, u32(0), "found 0");
  refuse("llama.rope.dimension_count", kU32, u32(~0U), "found 4294967295");
  refuse("llama.attention.layer_norm_rms_epsilon", kBool, "\1", "found true");
  refuse("general.architecture", kU32, u32(1), "found 1, expected a string");
}

/// config.json with one member changed.
struct ChangedMember {
  const char* key;
  Json value;
  int status;
  const char* part;
};

TEST_F(Catalogue, N147_ValuesOfAnotherKind) {
  const Json sound = parse_json(slurp(folder_ / "model/config.json"), "config");
  for (const ChangedMember& change :
       {ChangedMember{"tie_word_embeddings", "yes", 3, "found \"yes\", expected true or false"},
        ChangedMember{"hidden_act", 5, 3, "found 5, expected a string"},
        ChangedMember{"rope_scaling", "x", 3, "found \"x\", expected an object"},
        ChangedMember{"quantization_config", Json::array(), 3, "expected an object"},
        ChangedMember{"max_position_embeddings", 0, 3, "found 0"}, ChangedMember{"vocab_size", 0, 3, "found 0"},
        ChangedMember{"head_dim", 1UL << 40, 3, "found 1099511627776"},
        ChangedMember{"rope_theta", 1e308, 3, "in the range of f32"},
        ChangedMember{"architectures", "LlamaForCausalLM", 3, "expected an array"},
        ChangedMember{"architectures", Json::array(), 3, "expected the name of a class"},
        ChangedMember{"architectures", {1}, 3, "found 1, expected a string"}}) {
    Json config = sound;
    config[change.key] = change.value;
    if (change.key == std::string_view("architectures")) config.erase("model_type");  // which else says it
    write("model/config.json", config.dump());
    expect_model_refused(change.status, {"config.json: /", change.key, change.part});
  }
}

TEST_F(Catalogue, N148_ScalingsThatCannotBe) {
  const auto refuse = [&](const Json& scaling, std::string_view part) {
    edit_json("model/config.json", [&](Json& config) { config["rope_scaling"] = scaling; });
    expect_model_refused(3, {"config.json: /rope_scaling", part});
  };
  refuse({{"rope_type", "yarn"}, {"factor", 0}}, "/factor: found 0");
  refuse({{"rope_type", "yarn"}, {"factor", 1e300}}, "/factor: found 1e+300");
  refuse({{"rope_type", "dynamic"}, {"factor", -1}}, "/factor: found -1");
  refuse({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 0}},
         "/original_max_position_embeddings: found 0");
  refuse({{"rope_type", "llama3"},
          {"factor", 8.0},
          {"low_freq_factor", 4.0},
          {"high_freq_factor", 1.0},
          {"original_max_position_embeddings", 64}},
         "/high_freq_factor: found 1.0, expected a number above low_freq_factor");
  refuse({{"rope_type", "longrope"}, {"short_factor", {1}}, {"long_factor", {1}}}, "/short_factor");
}

TEST_F(Catalogue, N149_KindsOfLayers) {
  edit_json("model/config.json", [](Json& config) { config["layer_types"] = {"full_attention"}; });
  expect_model_refused(3, {"config.json: /layer_types", "expected one type for each of 4 layers"});
  edit_json("model/config.json", [](Json& config) { config["layer_types"] = Json(4, "spiral_attention"); });
  expect_model_refused(4, {"config.json: /layer_types/0", "spiral_attention"});
}

TEST_F(Catalogue, N150_MissingTensorsOfEveryLayer) {
  edit_json("model/config.json", [](Json& config) { config["num_hidden_layers"] = 4096; });
  expect_model_refused(3, {"36828 tensors are missing", "first 4 whole"});
  edit_json("model/config.json", [](Json& config) {
    config["num_hidden_layers"] = 4;
    config["attention_bias"] = true;
  });
  expect_model_refused(3, {"16 tensors are missing", "model.layers.0.self_attn.q_proj.bias"});
}

TEST_F(Catalogue, N150_NamesThatBeginOtherwise) {
  const TensorFile whole(folder_ / "model/model.safetensors");
  for (const auto& [from, to] : {std::pair{"", "_orig_mod."}, std::pair{"", "module."}, std::pair{"", "module.module."},
                                 std::pair{"model.", "model._orig_mod."}, std::pair{"model.", "transformer.body."}}) {
    TensorFile renamed = whole;
    renamed.header = Json::object();
    for (const auto& [name, entry] : whole.header.items())
      renamed.header[name.starts_with(from) && name != "__metadata__" ? to + name.substr(std::strlen(from)) : name] =
          entry;
    write("model/model.safetensors", renamed.bytes());
    const std::string found = std::string("names in the file begin with \"") + to;
    expect_model_refused(3, {"tensors are missing", found, "expected \""});
  }
  TensorFile less = whole;
  less.header.erase("model.layers.2.self_attn.q_proj.weight");
  write("model/model.safetensors", less.bytes());
  Words words = capture_words();
  const Outcome outcome = run("kvspectrum", words);
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, ::testing::Not(::testing::HasSubstr("begin with")));
}

}  // namespace
}  // namespace kvs::testing
