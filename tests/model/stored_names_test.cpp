// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "model/decoder.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

using test::NamedTensor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Tensors = std::vector<NamedTensor>;

Json read_golden_json(const std::string& name) {
  const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
  return parse_json(read_text_file(path, 1 << 20), path.string());
}

/// A model's results for a few tokens, and its notes.
struct Outcome {
  std::vector<float> nll;
  std::vector<std::string> notes;
};

/// A golden model whose config and tensors a test changes before it is written.
class StoredNames : public testing::Test {
 protected:
  explicit StoredNames(const char* golden = "llama") {
    const Json json = read_golden_json(golden);
    config_ = json["config"];
    for (const auto& [name, shape] : json["tensors"].items()) {
      const auto extents = shape.get<std::vector<std::uint64_t>>();
      tensors_.push_back(
          {name, extents, test::formula_weights(name, extents, config_["model_type"].get<std::string>())});
    }
  }

  NamedTensor& tensor(std::string_view name) { return *std::ranges::find(tensors_, name, &NamedTensor::name); }
  void remove(std::string_view name) {
    std::erase_if(tensors_, [&](const NamedTensor& tensor) { return tensor.name == name; });
  }
  void strip(std::string_view prefix) {
    for (NamedTensor& tensor : tensors_) {
      if (tensor.name.starts_with(prefix)) tensor.name = tensor.name.substr(prefix.size());
    }
  }

  std::unique_ptr<ModelSource> open() const {
    std::filesystem::create_directories(folder_ / "m");
    write_file_atomically(folder_ / "m" / "config.json", dump_json(config_), true);
    write_file_atomically(folder_ / "m" / "model.safetensors", test::safetensors_bytes(tensors_), true);
    return ModelSource::open(folder_ / "m");
  }

  Outcome run() const {
    const auto backend = make_backend("cpu", DType::kF32, 1);
    const auto source = open();
    const Model model(*source, *backend);
    Decoder decoder(model);
    return {document_nll(decoder, std::vector<std::int32_t>{7, 1, 99, 12, 12, 60, 130, 3}), source->notes()};
  }

  std::string complaint() const {
    try {
      open();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      return error.what();
    }
    return "no error";
  }

  test::TemporaryDirectory folder_;
  Json config_;
  Tensors tensors_;
};

TEST_F(StoredNames, AHeadUnlikeTheEmbeddingIsTheHeadWhateverTheConfigTies) {
  config_["tie_word_embeddings"] = false;
  const std::vector<float> untied = run().nll;
  config_["tie_word_embeddings"] = true;
  const Outcome stored = run();
  EXPECT_EQ(stored.nll, untied);
  EXPECT_THAT(stored.notes, ElementsAre(AllOf(HasSubstr("lm_head.weight differs from model.embed_tokens.weight"),
                                              HasSubstr("tie_word_embeddings"))));
  EXPECT_FALSE(open()->config().tied_head);
  const std::string digest = open()->sha256();
  tensor("lm_head.weight").values[0] += 1;
  EXPECT_NE(open()->sha256(), digest) << "the digest covers the head";
  remove("lm_head.weight");
  EXPECT_NE(run().nll, untied);
}

TEST_F(StoredNames, AHeadLikeTheEmbeddingStaysTied) {
  config_["tie_word_embeddings"] = true;
  tensor("lm_head.weight").values = tensor("model.embed_tokens.weight").values;
  EXPECT_TRUE(open()->config().tied_head);
  const Outcome doubled = run();
  EXPECT_THAT(doubled.notes, ElementsAre(HasSubstr("not used")));
  remove("lm_head.weight");
  EXPECT_EQ(run().nll, doubled.nll);
}

TEST_F(StoredNames, TyingWorksBothWays) {
  config_["tie_word_embeddings"] = true;
  remove("lm_head.weight");
  const Outcome embedding_alone = run();
  tensor("model.embed_tokens.weight").name = "lm_head.weight";
  const Outcome head_alone = run();
  EXPECT_EQ(head_alone.nll, embedding_alone.nll);
  EXPECT_THAT(head_alone.notes, IsEmpty());
  config_["tie_word_embeddings"] = false;
  EXPECT_THAT(complaint(), HasSubstr("1 tensor is missing: model.embed_tokens.weight"));
}

TEST_F(StoredNames, AnUntiedModelWithoutItsHeadIsToldSo) {
  remove("lm_head.weight");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("1 tensor is missing: lm_head.weight; tie_word_embeddings is false"),
                                 testing::Not(HasSubstr("layers"))));
  remove("model.layers.1.mlp.up_proj.weight");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("2 tensors are missing: lm_head.weight, model.layers.1.mlp.up_proj.weight"),
                                 HasSubstr("hold the first 1 whole")));
}

TEST_F(StoredNames, ABaseClassStoresNamesWithoutItsPrefix) {
  const std::vector<float> whole = run().nll;
  strip("model.");
  EXPECT_EQ(run().nll, whole);
  EXPECT_THAT(open()->notes(), IsEmpty());
  config_["architectures"][0] = "LlamaModel";
  EXPECT_EQ(run().nll, whole);
  remove("layers.2.mlp.up_proj.weight");
  EXPECT_THAT(complaint(), HasSubstr("missing: model.layers.2.mlp.up_proj.weight"));
}

TEST_F(StoredNames, AModelThatHeldTheWholeOneAddsItsPrefix) {
  const std::vector<float> whole = run().nll;
  for (NamedTensor& tensor : tensors_) tensor.name = "model." + tensor.name;
  EXPECT_EQ(run().nll, whole);
  EXPECT_THAT(open()->notes(), IsEmpty());
  remove("model.lm_head.weight");
  EXPECT_THAT(complaint(), HasSubstr("missing: lm_head.weight"));
  for (NamedTensor& tensor : tensors_) tensor.name = "other." + tensor.name;
  EXPECT_THAT(complaint(), HasSubstr("missing: model.embed_tokens.weight, model.norm.weight"));
}

struct StoredNamesOfNeox : StoredNames {
  StoredNamesOfNeox() : StoredNames("gpt_neox") {}
};

TEST_F(StoredNamesOfNeox, BiasesLackThePrefixToo) {
  const std::vector<float> whole = run().nll;
  strip("gpt_neox.");
  EXPECT_EQ(run().nll, whole);
}

class TextOfQwen35 : public StoredNames {
 protected:
  TextOfQwen35() : StoredNames("qwen3_5") {}
};

TEST_F(TextOfQwen35, MayHaveTheNamesOfItsComposite) {
  const std::vector<float> composite = run().nll;
  config_ = Json(config_["text_config"]);
  config_["tie_word_embeddings"] = false;
  EXPECT_EQ(run().nll, composite);
  for (NamedTensor& each : tensors_)
    if (each.name.starts_with("model.language_model.")) each.name = "model." + each.name.substr(21);
  EXPECT_EQ(run().nll, composite);
}

}  // namespace
}  // namespace kvs
