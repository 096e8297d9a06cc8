// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "io/gguf.h"
#include "model/model.h"
#include "model/parsed_config.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string read_bytes(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A copy of a golden model that a test may damage.
class ModelSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    root_ = fs::path(testing::TempDir()) / ("kvs_model_source_" + name + std::to_string(::getpid()));
    fs::create_directories(root_);
    fs::copy(test::golden_path("tiny_llama_gqa"), root_ / "tiny");
    fs::copy(test::golden_path("tiny_llama.gguf"), root_ / "tiny.gguf");
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path folder() const { return root_ / "tiny"; }
  fs::path gguf() const { return root_ / "tiny.gguf"; }

  /// Opens the folder with a changed config.json.
  void open_with(const std::function<void(Json&)>& change) const {
    Json config = Json::parse(read_bytes(test::golden_path("tiny_llama_gqa") / "config.json"));
    change(config);
    write_bytes(folder() / "config.json", config.dump());
    ModelSource::open(folder());
  }

  /// Opens the GGUF with the number behind a metadata key replaced (key, type u32, value).
  template <class T>
  void open_gguf_with(const std::string& key, T value) const {
    std::string bytes = read_bytes(test::golden_path("tiny_llama.gguf"));
    const std::size_t at = bytes.find(key);
    ASSERT_NE(at, std::string::npos);
    std::memcpy(&bytes[at + key.size() + 4], &value, sizeof(value));
    write_bytes(gguf(), bytes);
    ModelSource::open(gguf());
  }

  static void expect_error(ErrorCode code, const testing::Matcher<std::string>& message,
                           const std::function<void()>& action) {
    try {
      action();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(std::string(error.what()), message);
    }
  }

  void expect_config_error(ErrorCode code, const testing::Matcher<std::string>& message,
                           const std::function<void(Json&)>& change) const {
    expect_error(code, message, [&] { open_with(change); });
  }

  fs::path root_;
};

TEST_F(ModelSourceTest, ReadsTheConfigOfAFolder) {
  const std::unique_ptr<ModelSource> source = ModelSource::open(folder());
  const ModelConfig& config = source->config();
  EXPECT_EQ(config.name, "tiny");
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.layers(), 2U);
  EXPECT_EQ(config.d_model, 32U);
  EXPECT_EQ(config.d_ff(), 32U);
  EXPECT_EQ(config.query_heads(), 4U);
  EXPECT_EQ(config.kv_heads(), 2U);
  EXPECT_EQ(config.head_dim(), 8U);
  EXPECT_EQ(config.vocabulary, 64U);
  EXPECT_EQ(config.context, 128U);
  EXPECT_EQ(config.norm_epsilon, 1e-5F);
  EXPECT_EQ(config.ropes.front().theta, 10000);
  EXPECT_EQ(config.ropes.front().scaling, RopeScaling{});
  EXPECT_TRUE(config.tied_head);
  EXPECT_TRUE(source->notes().empty());
}

TEST_F(ModelSourceTest, ReadsTheConfigOfAGguf) {
  const std::unique_ptr<ModelSource> source = ModelSource::open(gguf());
  const ModelConfig& config = source->config();
  EXPECT_EQ(config.name, "tiny llama");
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.layers(), 2U);
  EXPECT_EQ(config.kv_heads(), 2U);
  EXPECT_EQ(config.head_dim(), 8U);
  EXPECT_FALSE(config.tied_head);
  EXPECT_EQ(config.ropes.front().scaling.type, RopeScaling::Type::kFactors);
}

TEST_F(ModelSourceTest, DigestFollowsTheWeightsAndNothingElse) {
  const std::string digest = ModelSource::open(folder())->sha256();
  EXPECT_EQ(digest.size(), 64U);
  open_with([](Json& config) { config["max_position_embeddings"] = 256; });
  EXPECT_EQ(ModelSource::open(folder())->sha256(), digest);
  std::string bytes = read_bytes(folder() / "model.safetensors");
  bytes.back() ^= 1;
  write_bytes(folder() / "model.safetensors", bytes);
  EXPECT_NE(ModelSource::open(folder())->sha256(), digest);
}

TEST_F(ModelSourceTest, UnpermutesQueryAndKeyRowsOfAGguf) {
  // Row half·(d/2) + c of head h is stored as row 2c + half of it: with d = 8, row 8 + 5 (half 1, c 1) as row 8 + 3.
  const std::unique_ptr<GgufFile> file = GgufFile::open(gguf());
  const StoredTensor* stored = file->find("blk.1.attn_k.weight");
  ASSERT_NE(stored, nullptr);
  std::vector<float> row(32);
  read_rows(*stored, 11, 1, row);
  const std::vector<float> keys = ModelSource::open(gguf())->projection(1, 'k');
  ASSERT_EQ(keys.size(), 16U * 32U);
  EXPECT_EQ(std::vector<float>(keys.begin() + 13 * 32, keys.begin() + 14 * 32), row);
  // Values are not rotated, so their rows stay.
  read_rows(*file->find("blk.1.attn_v.weight"), 11, 1, row);
  const std::vector<float> values = ModelSource::open(gguf())->projection(1, 'v');
  EXPECT_EQ(std::vector<float>(values.begin() + 11 * 32, values.begin() + 12 * 32), row);
}

TEST_F(ModelSourceTest, MissingOrForeignFiles) {
  expect_error(ErrorCode::kInput, HasSubstr("no such file"), [&] { ModelSource::open(root_ / "absent"); });
  write_bytes(root_ / "model.bin", std::string("PK\x03\x04zip", 7));
  expect_error(ErrorCode::kUnsupported, HasSubstr("only safetensors and GGUF"),
               [&] { ModelSource::open(root_ / "model.bin"); });
  write_bytes(root_ / "renamed", "\x80\x02}q");
  expect_error(ErrorCode::kUnsupported, HasSubstr("pickle"), [&] { ModelSource::open(root_ / "renamed"); });
  fs::create_directory(root_ / "empty");
  expect_error(ErrorCode::kInput, HasSubstr("config.json"), [&] { ModelSource::open(root_ / "empty"); });
  expect_error(ErrorCode::kInput, HasSubstr("folder"), [&] { ModelSource::open(folder() / "model.safetensors"); });
  fs::rename(folder() / "model.safetensors", folder() / "pytorch_model.bin");
  expect_error(ErrorCode::kUnsupported, HasSubstr("only safetensors and GGUF"), [&] { ModelSource::open(folder()); });
  fs::remove(folder() / "pytorch_model.bin");
  expect_error(ErrorCode::kInput, HasSubstr("no weights"), [&] { ModelSource::open(folder()); });
}

TEST_F(ModelSourceTest, TokenizerModelServesAFolderWithoutTokenizerJson) {
  const std::unique_ptr<ModelSource> source = ModelSource::open(folder());
  write_bytes(folder() / "tokenizer.model", "no model");
  expect_error(ErrorCode::kInput, HasSubstr("tokenizer.model: byte "), [&] { source->load_tokenizer(); });
  write_bytes(folder() / "tokenizer.json", "{");
  expect_error(ErrorCode::kInput, HasSubstr("tokenizer.json: line 1"), [&] { source->load_tokenizer(); });
}

TEST_F(ModelSourceTest, ModelWithoutATokenizerStillOpens) {
  const std::unique_ptr<ModelSource> source = ModelSource::open(folder());
  expect_error(ErrorCode::kInput, HasSubstr("--tokens-file"), [&] { source->load_tokenizer(); });
  const std::unique_ptr<ModelSource> gguf_source = ModelSource::open(gguf());
  expect_error(ErrorCode::kInput, HasSubstr("tokenizer.ggml"), [&] { gguf_source->load_tokenizer(); });
}

// reliability: values of the wrong kind or range, each with its position in the file.
TEST_F(ModelSourceTest, RefusesValuesThatAreNoCounts) {
  const std::vector<Json> bad{30.5, "30", true, -1, 0, 1UL << 33, 1e300, nullptr, Json::array({2})};
  for (const Json& value : bad) {
    expect_config_error(ErrorCode::kInput, HasSubstr("num_hidden_layers"),
                        [&](Json& config) { config["num_hidden_layers"] = value; });
  }
}

TEST_F(ModelSourceTest, RefusesImpossibleConstants) {
  for (const Json& value : {Json(0), Json(-1), Json(1e300), Json(1e-300), Json("10000")}) {
    expect_config_error(ErrorCode::kInput, HasSubstr("/rope_parameters/rope_theta"),
                        [&](Json& config) { config["rope_parameters"]["rope_theta"] = value; });
    expect_config_error(ErrorCode::kInput, HasSubstr("/rms_norm_eps"),
                        [&](Json& config) { config["rms_norm_eps"] = value; });
  }
}

TEST_F(ModelSourceTest, NamesAMissingKey) {
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size"}) {
    expect_config_error(ErrorCode::kInput, HasSubstr(key), [&](Json& config) { config.erase(key); });
  }
}

TEST_F(ModelSourceTest, RefusesHeadsThatDoNotDivide) {
  expect_config_error(ErrorCode::kInput, AllOf(HasSubstr("num_attention_heads 4"), HasSubstr("num_key_value_heads 3")),
                      [](Json& config) { config["num_key_value_heads"] = 3; });
  expect_config_error(ErrorCode::kInput, HasSubstr("num_key_value_heads"),
                      [](Json& config) { config["num_key_value_heads"] = 0; });
  expect_config_error(ErrorCode::kInput, HasSubstr("num_key_value_heads 8"),
                      [](Json& config) { config["num_key_value_heads"] = 8; });
  expect_config_error(ErrorCode::kInput, HasSubstr("head_dim 7"), [](Json& config) { config["head_dim"] = 7; });
  expect_config_error(ErrorCode::kInput, HasSubstr("hidden_size 34"), [](Json& config) {
    config.erase("head_dim");
    config["hidden_size"] = 34;
  });
}

TEST_F(ModelSourceTest, RefusesByNameWhatItDoesNotHandle) {
  const auto expect = [&](const char* name, const std::function<void(Json&)>& change) {
    expect_config_error(ErrorCode::kUnsupported, HasSubstr(name), change);
  };
  expect("MambaForCausalLM", [](Json& config) {
    config["architectures"][0] = "MambaForCausalLM";
    config["model_type"] = "mamba";
  });
  expect("relu2", [](Json& config) { config["hidden_act"] = "relu2"; });
  expect("/attention_multiplier", [](Json& config) { config["attention_multiplier"] = 0.5; });
  expect("\"su\"", [](Json& config) { config["rope_parameters"]["rope_type"] = "su"; });
  expect("full_attention", [](Json& config) {
    config["rope_parameters"]["full_attention"] = {{"rope_type", "default"}};
  });
  expect("partial_rotary_factor", [](Json& config) { config["partial_rotary_factor"] = 0.5; });
  expect("hqq", [](Json& config) { config["quantization_config"] = {{"quant_method", "hqq"}}; });
  expect("/sliding_window", [](Json& config) { config["sliding_window"] = 64; });  // Llama's class reads no window
  expect("mamba", [](Json& config) {
    config.erase("architectures");
    config["model_type"] = "mamba";
  });
}

TEST_F(ModelSourceTest, MistralsWindowFollowsTheConfig) {
  const auto windows = [&](const std::function<void(Json&)>& change) {
    open_with([&](Json& config) {
      config["model_type"] = "mistral";
      change(config);
    });
    const std::unique_ptr<ModelSource> source = ModelSource::open(folder());
    return std::pair(source->config().window(0), source->config().window(1));
  };
  EXPECT_EQ(windows([](Json& config) { config["sliding_window"] = nullptr; }), std::pair(0UL, 0UL));
  EXPECT_EQ(windows([](Json& config) { config["sliding_window"] = 7; }), std::pair(7UL, 7UL));
  EXPECT_EQ(windows([](Json&) {}), std::pair(4096UL, 4096UL));  // its class's default
  EXPECT_EQ(ModelSource::open(folder())->config().architecture, "mistral");
}

TEST_F(ModelSourceTest, MissingKeysAreWhatTheyAreInTheClass) {
  // Transformers 5.24: configuration_*.py of each class. {class, KV heads, context and epsilon without their keys}
  struct Row {
    const char* name;
    std::size_t kv_heads, context;
    float epsilon;
  };
  for (const auto& [name, kv_heads, context, epsilon] :
       {Row{"LlamaForCausalLM", 32, 2048, 1e-6F}, Row{"MistralForCausalLM", 8, 131072, 1e-6F},
        Row{"Qwen2ForCausalLM", 32, 32768, 1e-6F}, Row{"Qwen3ForCausalLM", 32, 32768, 1e-6F},
        Row{"Gemma2ForCausalLM", 4, 8192, 1e-6F}, Row{"Gemma3ForCausalLM", 4, 131072, 1e-6F},
        Row{"Phi3ForCausalLM", 32, 4096, 1e-5F}, Row{"Olmo2ForCausalLM", 32, 2048, 1e-5F},
        Row{"GPTNeoXForCausalLM", 32, 2048, 1e-5F}}) {
    for (const bool null : {false, true}) {
      Json config = Json::parse(read_bytes(test::golden_path("tiny_llama_gqa") / "config.json"));
      config["architectures"][0] = name;
      config.erase("model_type");
      config["num_attention_heads"] = 32;
      config.erase("rms_norm_eps");
      config.erase("hidden_act");
      config.erase("max_position_embeddings");
      config.erase("num_key_value_heads");
      config.erase("rope_parameters");
      if (null) config["num_key_value_heads"] = nullptr;
      write_bytes(folder() / "config.json", config.dump());
      const ParsedConfig parsed = parse_hf_config(folder() / "config.json");
      EXPECT_EQ(parsed.config.kv_heads(), null ? 32U : kv_heads) << name;
      EXPECT_EQ(parsed.config.context, context) << name;
      EXPECT_EQ(parsed.config.norm_epsilon, epsilon) << name;
    }
  }
}

TEST_F(ModelSourceTest, EveryNameOfAnActivationIsKnown) {
  const std::pair<const char*, Activation> names[] = {
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu},
      {"gelu", Activation::kGeluErf},
      {"quick_gelu", Activation::kGeluSigmoid},
      {"relu", Activation::kRelu},
      {"gelu_python", Activation::kGeluErf},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh},
      {"gelu_accurate", Activation::kGeluTanh},
      {"gelu_python_tanh", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
  };
  for (const auto& [name, activation] : names) {
    open_with([&](Json& config) { config["hidden_act"] = name; });
    EXPECT_EQ(ModelSource::open(folder())->config().arithmetic.activation, activation) << name;
  }
  for (const char* name : {"gelu_10", "relu2"}) {
    expect_config_error(ErrorCode::kUnsupported, HasSubstr(name), [&](Json& config) { config["hidden_act"] = name; });
  }
}

TEST_F(ModelSourceTest, GoesByModelTypeAsTransformersDoes) {
  const auto notes = [&](const Json& classes) {
    open_with([&](Json& config) { config["architectures"] = classes; });
    const auto source = ModelSource::open(folder());
    EXPECT_EQ(source->config().architecture, "llama") << classes;
    return source->notes();
  };
  for (const Json& same : {Json(), Json::array({"LlamaForCausalLM"}), Json::array({"LlamaModel", "X"})})
    EXPECT_THAT(notes(same), testing::IsEmpty()) << same;
  for (const Json& other :
       {Json::array({"LLaMAForCausalLM"}), Json::array({"MistralForCausalLM"}), Json::array(), Json::array({1}),
        Json::array({nullptr}), Json("LlamaForCausalLM"), Json(5), Json::object()})
    EXPECT_THAT(notes(other), testing::ElementsAre(AllOf(HasSubstr("/architectures: found "),
                                                         HasSubstr("model_type says LlamaForCausalLM"))))
        << other;
  open_with([](Json& config) { config["model_type"] = "llama-of-mine"; });
  EXPECT_THAT(ModelSource::open(folder())->notes(), testing::ElementsAre(HasSubstr("found \"llama-of-mine\"")));
  expect_config_error(ErrorCode::kInput, HasSubstr("/model_type: found 3, expected a string"),
                      [](Json& config) { config["model_type"] = 3; });
}

/// `text` with NaN, Infinity and -Infinity instead of the value 123454321.
std::vector<std::string> with_python_words(const Json& config) {
  std::vector<std::string> texts;
  for (const char* word : {"NaN", "Infinity", "-Infinity"}) {
    std::string text = config.dump();
    const std::size_t at = text.find("123454321");
    texts.push_back(text.replace(at, 9, word));
  }
  return texts;
}

TEST_F(ModelSourceTest, TakesNumbersThatAreNotFiniteWhereTheyHaveNoPart) {
  const Json sound = Json::parse(read_bytes(test::golden_path("tiny_llama_gqa") / "config.json"));
  // Keys of a class, of no class, and only of other classes.
  for (const char* key :
       {"initializer_range", "attention_dropout", "of_mine", "rope_local_base_freq", "layer_norm_eps"}) {
    Json config = sound;
    config[key] = 123454321;
    for (const std::string& text : with_python_words(config)) {
      write_bytes(folder() / "config.json", text);
      EXPECT_THAT(ModelSource::open(folder())->notes(),
                  testing::Contains(AllOf(HasSubstr("NaN or infinity has no effect in: "), HasSubstr(key))));
    }
  }
  for (const char* key : {"rms_norm_eps", "hidden_size", "head_dim", "num_hidden_layers", "vocab_size", "rope_theta",
                          "max_position_embeddings", "tie_word_embeddings", "attention_multiplier", "clip_qkv"}) {
    Json config = sound;
    config[key] = 123454321;
    for (const std::string& text : with_python_words(config)) {
      write_bytes(folder() / "config.json", text);
      const bool other = key == std::string_view("attention_multiplier") || key == std::string_view("clip_qkv");
      expect_error(other ? ErrorCode::kUnsupported : ErrorCode::kInput, AllOf(HasSubstr(key), HasSubstr("found ")),
                   [&] { ModelSource::open(folder()); });
    }
  }
}

TEST_F(ModelSourceTest, NotesKeysThatNothingIsKnownOf) {
  open_with([](Json& config) { config["frobnication"] = 3; });
  EXPECT_THAT(ModelSource::open(folder())->notes(), testing::ElementsAre(HasSubstr("frobnication")));
}

TEST_F(ModelSourceTest, OldSpellingOfRopeScalingEqualsTheNew) {
  const Json llama3{{"rope_type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"original_max_position_embeddings", 64}};
  open_with([&](Json& config) {
    config.erase("rope_parameters");
    config["rope_scaling"] = llama3;
    config["rope_theta"] = 500000.0;
  });
  const ModelConfig found = ModelSource::open(folder())->config();
  const ModelConfig expected = ModelSource::open(test::golden_path("tiny_llama_mha"))->config();
  EXPECT_EQ(found.ropes, expected.ropes);
  EXPECT_EQ(found.ropes.front().theta, 500000);
}

TEST_F(ModelSourceTest, NamesMissingTensors) {
  expect_config_error(ErrorCode::kInput,
                      AllOf(HasSubstr("18 tensors are missing"), HasSubstr("model.layers.2.input_layernorm.weight"),
                            HasSubstr("the weights hold the first 2 whole")),
                      [](Json& config) { config["num_hidden_layers"] = 4; });
  expect_config_error(ErrorCode::kInput, HasSubstr("1 tensor is missing: lm_head.weight"),
                      [](Json& config) { config["tie_word_embeddings"] = false; });
  expect_config_error(ErrorCode::kInput, HasSubstr("q_proj.bias"),
                      [](Json& config) { config["attention_bias"] = true; });
}

TEST_F(ModelSourceTest, NamesTheConfigKeysBehindAWrongShape) {
  expect_config_error(ErrorCode::kInput,
                      AllOf(HasSubstr("k_proj.weight"), HasSubstr("found shape [16, 32], expected [32, 32]"),
                            HasSubstr("num_key_value_heads 4 x head size 8")),
                      [](Json& config) { config["num_key_value_heads"] = 4; });
  expect_config_error(ErrorCode::kInput, AllOf(HasSubstr("embed_tokens.weight"), HasSubstr("vocab_size")),
                      [](Json& config) { config["vocab_size"] = 65; });
}

TEST_F(ModelSourceTest, CutsTheShapeOfATensorOfManyDimensions) {
  const std::string stored = read_bytes(folder() / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, stored.data(), sizeof length);
  Json header = Json::parse(stored.substr(sizeof length, length));
  Json& shape = header["model.layers.0.self_attn.q_proj.weight"]["shape"];
  while (shape.size() < 2000) shape.insert(shape.begin(), 1);
  const std::string text = header.dump();
  const std::uint64_t grown = text.size();
  std::string bytes(sizeof grown, ' ');
  std::memcpy(bytes.data(), &grown, sizeof grown);
  write_bytes(folder() / "model.safetensors", bytes + text + stored.substr(sizeof length + length));
  expect_error(ErrorCode::kInput,
               HasSubstr("found shape [1, 1, 1, 1, 1, 1, 1, 1, \u2026] of 2000 dimensions, expected [32, 32]"),
               [&] { ModelSource::open(folder()); });
}

TEST_F(ModelSourceTest, NotesLayersThatTheConfigLeavesOut) {
  open_with([](Json& config) { config["num_hidden_layers"] = 1; });
  const std::unique_ptr<ModelSource> source = ModelSource::open(folder());
  ASSERT_EQ(source->notes().size(), 1U);
  EXPECT_EQ(source->notes()[0], "skipped 9 tensors of: layers beyond num_hidden_layers");
}

TEST_F(ModelSourceTest, NotesAnAdapterBesideTheWeights) {
  write_bytes(folder() / "adapter_config.json", "{}");
  EXPECT_THAT(ModelSource::open(folder())->notes(), testing::ElementsAre(HasSubstr("adapter_config.json")));
}

TEST_F(ModelSourceTest, NotesCustomCode) {
  open_with([](Json& config) { config["auto_map"] = {{"AutoModel", "evil.Model"}}; });
  EXPECT_THAT(ModelSource::open(folder())->notes(), testing::ElementsAre(HasSubstr("auto_map")));
}

TEST_F(ModelSourceTest, GgufCountsAreChecked) {
  expect_error(ErrorCode::kInput, HasSubstr("llama.block_count"),
               [&] { open_gguf_with<std::uint32_t>("llama.block_count", 0); });
  expect_error(ErrorCode::kInput, HasSubstr("llama.block_count"),
               [&] { open_gguf_with<std::uint32_t>("llama.block_count", 0xffffffff); });
  expect_error(ErrorCode::kInput, AllOf(HasSubstr("9 tensors are missing"), HasSubstr("blk.2.attn_norm.weight")),
               [&] { open_gguf_with<std::uint32_t>("llama.block_count", 3); });
  expect_error(ErrorCode::kInput, HasSubstr("llama.attention.head_count_kv"),
               [&] { open_gguf_with<std::uint32_t>("llama.attention.head_count_kv", 0); });
  expect_error(ErrorCode::kInput, AllOf(HasSubstr("head_count 4"), HasSubstr("head_count_kv 8")),
               [&] { open_gguf_with<std::uint32_t>("llama.attention.head_count_kv", 8); });
  for (const std::uint32_t channels : {0U, 3U, 10U}) {  // of a head of 8
    expect_error(ErrorCode::kInput, HasSubstr("rope.dimension_count"),
                 [&] { open_gguf_with<std::uint32_t>("llama.rope.dimension_count", channels); });
  }
  expect_error(ErrorCode::kInput, HasSubstr("layer_norm_rms_epsilon"),
               [&] { open_gguf_with<float>("llama.attention.layer_norm_rms_epsilon", 0); });
}

TEST_F(ModelSourceTest, TheEmbeddingSaysTheVocabularyOfAGguf) {
  open_gguf_with<std::uint32_t>("llama.vocab_size", 65);
  const auto source = ModelSource::open(gguf());
  EXPECT_EQ(source->config().vocabulary, 64U);
  EXPECT_THAT(source->notes(), testing::ElementsAre(AllOf(HasSubstr("vocab_size is 65"), HasSubstr("64 rows"))));
}

TEST_F(ModelSourceTest, GgufOfAnotherArchitecture) {
  std::string bytes = read_bytes(gguf());
  const std::size_t at = bytes.find("llama", bytes.find("general.architecture"));
  bytes.replace(at, 5, "mamba");
  write_bytes(gguf(), bytes);
  expect_error(ErrorCode::kUnsupported, AllOf(HasSubstr("mamba"), HasSubstr("docs/models.md")),
               [&] { ModelSource::open(gguf()); });
}

TEST_F(ModelSourceTest, NotFiniteWeightsAreFoundBeforeAnyPass) {
  // The last tensor by offset: two bf16 NaN at its end.
  std::string bytes = read_bytes(folder() / "model.safetensors");
  bytes.replace(bytes.size() - 4, 4, "\xc0\x7f\xc0\x7f", 4);
  write_bytes(folder() / "model.safetensors", bytes);
  const std::unique_ptr<ModelSource> source = ModelSource::open(folder());
  const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  expect_error(ErrorCode::kData,
               AllOf(HasSubstr("tensor model.norm.weight"), HasSubstr("found 2 values"), HasSubstr("flat index 30")),
               [&] { Model(*source, *backend); });
}

TEST_F(ModelSourceTest, ReportsProgressAndBytes) {
  const std::unique_ptr<ModelSource> source = ModelSource::open(folder());
  const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  std::vector<std::size_t> seen;
  const Model model(*source, *backend, [&](std::size_t done, std::size_t all) { seen.push_back(done * 10 + all); });
  EXPECT_THAT(seen, testing::ElementsAre(12, 22));
  // 64·32 embedding and head each, 2·(64·32 qkv + 32·32 output + 3·32·32) and 5 norms of 32, 4 bytes each at least.
  EXPECT_GE(model.weight_bytes(), 4U * (2 * 64 * 32 + 2 * (64 * 32 + 32 * 32 + 3 * 32 * 32) + 5 * 32));
}

}  // namespace
}  // namespace kvs
