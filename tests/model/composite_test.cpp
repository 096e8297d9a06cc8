// SPDX-License-Identifier: Apache-2.0
#include "model/composite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "model/decoder.h"
#include "model/parsed_config.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

using test::NamedTensor;
using testing::ElementsAre;
using testing::HasSubstr;

/// The golden Mistral, as the language part of a Mistral 3.
class Composites : public testing::Test {
 protected:
  Composites() {
    const std::filesystem::path path = test::golden_path("parity/mistral.json");
    const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
    plain_ = golden["config"];
    for (const auto& [name, shape] : golden["tensors"].items()) {
      const auto extents = shape.get<std::vector<std::uint64_t>>();
      tensors_.push_back({name, extents, test::formula_weights(name, extents, "mistral")});
    }
    nll_ = run(plain_);
    config_ = {{"architectures", {"Mistral3ForConditionalGeneration"}},
               {"model_type", "mistral3"},
               {"text_config", plain_},
               {"tie_word_embeddings", false},
               {"vision_config", {{"model_type", "pixtral"}, {"hidden_size", 32}}}};
    config_["text_config"].erase("architectures");
  }

  /// Renames the decoder's tensors and the head.
  void rename(const std::string& prefix, const std::string& head) {
    for (NamedTensor& tensor : tensors_)
      tensor.name = tensor.name == "lm_head.weight" ? head : prefix + tensor.name.substr(sizeof "model." - 1);
  }
  void add(const std::string& name) { tensors_.push_back({name, {1}, {1}}); }

  std::unique_ptr<ModelSource> open(const Json& config) const {
    std::filesystem::create_directories(folder_ / "m");
    write_file_atomically(folder_ / "m" / "config.json", dump_json(config), true);
    write_file_atomically(folder_ / "m" / "model.safetensors", test::safetensors_bytes(tensors_), true);
    return ModelSource::open(folder_ / "m");
  }

  std::vector<float> run(const Json& config) const {
    const auto backend = make_backend("cpu", DType::kF32, 1);
    const auto source = open(config);
    const Model model(*source, *backend);
    Decoder decoder(model);
    return document_nll(decoder, std::vector<std::int32_t>{7, 1, 99, 12, 12, 60, 130, 3});
  }

  void expect_refused(ErrorCode code, const std::string& message) const {
    test::expect_error(code, message, [&] { open(config_); });
  }

  test::TemporaryDirectory folder_;
  Json plain_, config_;
  std::vector<NamedTensor> tensors_;
  std::vector<float> nll_;
};

TEST_F(Composites, ComputeAsTheirLanguagePartUnderEitherPrefix) {
  const std::vector<NamedTensor> names = tensors_;
  rename("language_model.model.", "language_model.lm_head.weight");
  EXPECT_EQ(run(config_), nll_);
  EXPECT_EQ(open(config_)->config().architecture, "mistral");
  tensors_ = names;
  rename("model.language_model.", "lm_head.weight");
  EXPECT_EQ(run(config_), nll_);
  EXPECT_THAT(open(config_)->notes(), testing::IsEmpty());
  test::expect_error(ErrorCode::kInput, "missing: model.embed_tokens.weight", [&] { open(plain_); });
}

TEST_F(Composites, SkipTheTensorsOfOtherPartsInOneNote) {
  rename("language_model.model.", "language_model.lm_head.weight");
  const std::string digest = open(config_)->sha256();
  for (const char* name :
       {"vision_tower.patch_conv.weight", "model.visual.blocks.0.attn.qkv.weight", "multi_modal_projector.norm.weight",
        "model.audio_tower.layers.0.weight", "mtp.layers.0.weight", "language_model.model.layers.3.mlp.up_proj.weight",
        "language_model.model.layers.0.self_attn.k_scale", "language_model.model.layers.0.mlp.up_proj.input_scale",
        "language_model.model.layers.0.self_attn.rotary_emb.inv_freq"})
    add(name);
  EXPECT_THAT(
      open(config_)->notes(),
      ElementsAre("skipped 8 tensors of: scales of activations, scales of the cache, layers beyond num_hidden_layers, "
                  "audio tower, vision tower, prediction of several tokens, projector"));
  EXPECT_EQ(open(config_)->sha256(), digest);
  add("language_model.model.layers.0.mlp.gate_proj.other");
  EXPECT_THAT(open(config_)->notes(), testing::Contains(HasSubstr("1 tensor is not used by the config")));
}

TEST_F(Composites, StateTiedEmbeddingsBesideTheTextConfig) {
  rename("language_model.model.", "language_model.lm_head.weight");
  config_["text_config"]["tie_word_embeddings"] = true;
  EXPECT_FALSE(open(config_)->config().tied_head);
  EXPECT_THAT(open(config_)->notes(), testing::IsEmpty()) << "the text_config's own key does not count";
  std::erase_if(tensors_, [](const NamedTensor& tensor) { return tensor.name.ends_with("lm_head.weight"); });
  expect_refused(ErrorCode::kInput, "missing: language_model.lm_head.weight");
  config_.erase("tie_word_embeddings");  // true in this class
  config_["text_config"]["tie_word_embeddings"] = false;
  EXPECT_TRUE(open(config_)->config().tied_head);
}

TEST_F(Composites, AreRefusedByName) {
  rename("language_model.model.", "language_model.lm_head.weight");
  config_["quantization_config"] = {{"quant_method", "hqq"}};
  expect_refused(ErrorCode::kUnsupported, "hqq");
  config_.erase("quantization_config");
  config_["text_config"]["model_type"] = "mamba";
  expect_refused(ErrorCode::kUnsupported,
                 "/text_config/model_type: found architecture \"mamba\", expected one of the ");
  config_["text_config"]["model_type"] = 5;
  expect_refused(ErrorCode::kInput, "/text_config/model_type: found 5");
  config_["text_config"] = Json::array();
  expect_refused(ErrorCode::kInput, "/text_config: found an array");
  config_["text_config"] = Json::object();
  expect_refused(ErrorCode::kInput, "num_hidden_layers");
  config_["text_config"] = nullptr;
  expect_refused(ErrorCode::kInput, "/text_config: found null, expected an object");
  config_.erase("text_config");
  expect_refused(ErrorCode::kInput, "/text_config: found nothing, expected a value");
  config_["text_config"] = Json::object();
  config_["model_type"] = "llava";
  expect_refused(
      ErrorCode::kUnsupported,
      "/model_type: found \"llava\" with a text_config, supported are: gemma3, gemma3n, gemma4, kimi_k25, llama4, "
      "mistral3, "
      "qwen3_5, qwen3_5_moe, qwen3_vl, qwen3_vl_moe");
  config_.erase("model_type");
  config_["architectures"][0] = "LlavaForConditionalGeneration";
  expect_refused(ErrorCode::kUnsupported, "/architectures/0: found \"LlavaForConditionalGeneration\"");
}

/// The golden Qwen 3 with experts: in a tensor for each, or transposed in one tensor of all.
class TransposedExperts : public Composites {
 protected:
  static constexpr std::size_t kExperts = 3, kWidth = 20, kModel = 48;

  TransposedExperts() {
    const std::filesystem::path path = test::golden_path("parity/qwen3.json");
    const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
    plain_ = golden["config"];
    plain_["model_type"] = "qwen3_moe";
    plain_.erase("architectures");
    plain_.erase("layer_types");
    plain_.update({{"num_experts", kExperts},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", kWidth},
                   {"norm_topk_prob", true}});
    tensors_.clear();
    for (const auto& [name, shape] : golden["tensors"].items())
      if (name.find(".mlp.") == std::string::npos) add_formula(tensors_, name, shape.get<std::vector<std::uint64_t>>());
    stacked_ = tensors_;
    for (std::size_t layer = 0; layer < plain_["num_hidden_layers"].get<std::size_t>(); ++layer)
      add_experts("model.layers." + std::to_string(layer) + ".mlp.");
    config_ = {{"model_type", "qwen3_vl_moe"}, {"text_config", plain_}, {"tie_word_embeddings", false}};
    config_["text_config"]["model_type"] = "qwen3_vl_moe_text";
  }

  static const NamedTensor& add_formula(std::vector<NamedTensor>& tensors, const std::string& name,
                                        const std::vector<std::uint64_t>& shape) {
    tensors.push_back({name, shape, test::formula_weights(name, shape, "qwen3")});
    return tensors.back();
  }

  void add_experts(const std::string& mlp) {
    stacked_.push_back(add_formula(tensors_, mlp + "gate.weight", {kExperts, kModel}));
    NamedTensor gate_up{mlp + "experts.gate_up_proj", {kExperts, kModel, 2 * kWidth}, {}};
    NamedTensor down{mlp + "experts.down_proj", {kExperts, kWidth, kModel}, {}};
    for (std::size_t expert = 0; expert < kExperts; ++expert) {
      const std::string name = mlp + "experts." + std::to_string(expert);
      const std::vector<float> gate = add_formula(tensors_, name + ".gate_proj.weight", {kWidth, kModel}).values;
      const std::vector<float> up = add_formula(tensors_, name + ".up_proj.weight", {kWidth, kModel}).values;
      const std::vector<float> out = add_formula(tensors_, name + ".down_proj.weight", {kModel, kWidth}).values;
      for (std::size_t column = 0; column < kModel; ++column)
        for (const std::vector<float>* part : {&gate, &up})
          for (std::size_t row = 0; row < kWidth; ++row) gate_up.values.push_back((*part)[row * kModel + column]);
      for (std::size_t column = 0; column < kWidth; ++column)
        for (std::size_t row = 0; row < kModel; ++row) down.values.push_back(out[row * kWidth + column]);
    }
    stacked_.push_back(gate_up);
    stacked_.push_back(down);
  }

  /// Exchanges the last two axes.
  static NamedTensor transposed(const NamedTensor& tensor) {
    const std::size_t rows = tensor.shape[1], columns = tensor.shape[2];
    NamedTensor result{tensor.name, {tensor.shape[0], columns, rows}, tensor.values};
    for (std::size_t matrix = 0; matrix < tensor.shape[0]; ++matrix)
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < columns; ++column)
          result.values[(matrix * columns + column) * rows + row] =
              tensor.values[(matrix * rows + row) * columns + column];
    return result;
  }

  std::vector<NamedTensor> stacked_;
};

TEST_F(TransposedExperts, ComputeAsTheirOwnMatrices) {
  const std::vector<float> expected = run(plain_);
  tensors_ = stacked_;
  rename("model.language_model.", "lm_head.weight");
  EXPECT_EQ(run(config_), expected);
  EXPECT_EQ(open(config_)->config().architecture, "qwen3_vl_moe");
  for (NamedTensor& tensor : tensors_)
    if (tensor.name.ends_with(".mlp.experts.down_proj")) tensor = transposed(tensor);
  EXPECT_EQ(run(config_), expected) << "as Transformers 5 writes it";
  for (NamedTensor& tensor : tensors_)
    if (tensor.name.ends_with("1.mlp.experts.down_proj")) tensor.shape = {kExperts, kWidth * kModel, 1};
  expect_refused(ErrorCode::kInput, "found shape [3, 960, 1], expected [3, 20, 48]");
}

TEST_F(Composites, GiveTheDefaultsOfTheirClasses) {
  // google/gemma-3-4b-it states only what differs from the class.
  config_ = {
      {"model_type", "gemma3"},
      {"text_config",
       {{"hidden_size", 2560}, {"intermediate_size", 10240}, {"num_hidden_layers", 34}, {"sliding_window", 1024}}}};
  write_file_atomically(folder_ / "config.json", dump_json(config_), true);
  const ModelConfig config = parse_hf_config(folder_ / "config.json").config;
  EXPECT_EQ(config.architecture, "gemma3");
  EXPECT_EQ(config.query_heads(), 8U);
  EXPECT_EQ(config.vocabulary, 262208U);
  EXPECT_TRUE(config.tied_head);
}

}  // namespace
}  // namespace kvs
