// SPDX-License-Identifier: Apache-2.0
// Ids of a difficult text, against Hugging Face `tokenizers` and llama.cpp (tests/golden/make_tokenizer_golden.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "io/gguf.h"
#include "io/json.h"
#include "tests/io/fake_gguf.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace kvs {
namespace {

std::string read_golden(const std::string& name) {
  std::ifstream file(std::string(KVS_GOLDEN_DIR "/") + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string& torture_text() {
  static const std::string text = read_golden("tokenizer_torture.txt");
  return text;
}

Json golden_json(const std::string& name) { return parse_json(read_golden(name), name); }

/// Shows the first difference of two lists as text: EXPECT_EQ on 2,000 numbers is not readable.
void expect_same_ids(const Tokenizer& tokenizer, const std::vector<std::int32_t>& found,
                     const std::vector<std::int32_t>& expected) {
  std::size_t at = 0;
  while (at < std::min(found.size(), expected.size()) && found[at] == expected[at]) ++at;
  if (at == found.size() && at == expected.size()) return;
  const auto tail = [&](const std::vector<std::int32_t>& ids) {
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(at);
    return tokenizer.decode({first, first + std::min<std::ptrdiff_t>(8, ids.end() - first)});
  };
  ADD_FAILURE() << "ids differ from number " << at << " of " << found.size() << " and " << expected.size()
                << " on:\nfound \"" << tail(found) << "\"\nexpected \"" << tail(expected) << '"';
}

struct Case {
  std::string vocabulary, name;  // tokenizer_VOCABULARY.json, and the case in tokenizer_VOCABULARY_ids.json
};

class SmallVocabulary : public testing::TestWithParam<Case> {
 protected:
  Json small_ = golden_json("tokenizer_" + GetParam().vocabulary + ".json");
  Json case_ = golden_json("tokenizer_" + GetParam().vocabulary + "_ids.json").at(GetParam().name);
};

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const char* vocabulary : {"small", "marked", "unigram"}) {
    const Json cases = golden_json("tokenizer_" + std::string(vocabulary) + "_ids.json");
    for (const auto& [name, value] : cases.items()) all.push_back({vocabulary, name});
  }
  return all;
}

/// tokenizer_small.json as GGUF metadata, which views into `small`.
FakeGguf as_gguf(const Json& small, std::string_view pre) {
  std::vector<std::string_view> tokens, merges;
  std::vector<std::int64_t> types;
  for (const auto& [token, id] : small.at("model").at("vocab").items()) {
    tokens.push_back(token);
    types.push_back(id.get<std::size_t>() < small.at("added_tokens").size() ? 3 : 1);
  }
  for (const Json& merge : small.at("model").at("merges")) merges.push_back(merge.get_ref<const std::string&>());
  FakeGguf file;
  file.values["tokenizer.ggml.model"] = std::string_view("gpt2");
  file.values["tokenizer.ggml.pre"] = pre;
  file.values["tokenizer.ggml.tokens"] = GgufArray(tokens);
  file.values["tokenizer.ggml.merges"] = GgufArray(merges);
  file.values["tokenizer.ggml.token_type"] = GgufArray(types);
  return file;
}

TEST_P(SmallVocabulary, GivesTheReferenceIds) {
  const auto expected = case_.at("ids").get<std::vector<std::int32_t>>();
  std::unique_ptr<Tokenizer> tokenizer;
  if (case_.contains("pre")) {
    tokenizer = load_tokenizer_gguf(as_gguf(small_, case_.at("pre").get_ref<const std::string&>()));
  } else {
    small_.merge_patch(case_.at("changes"));
    tokenizer = parse_tokenizer_json(dump_json(small_), "tokenizer.json");
  }
  expect_same_ids(*tokenizer, tokenizer->encode(torture_text()), expected);
}

INSTANTIATE_TEST_SUITE_P(Golden, SmallVocabulary, testing::ValuesIn(all_cases()), [](const auto& one) {
  std::string safe = one.param.vocabulary + "_" + one.param.name;
  for (char& c : safe) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return safe;
});

/// The pieces of tokenizer_bpe.model as GGUF metadata, which views into the fixture.
class SentencePieceVocabulary : public testing::TestWithParam<std::string> {
 protected:
  FakeGguf as_gguf(const Json& changes) {
    const auto scores = cases_.at("pieces").at("scores").get<std::vector<double>>();
    FakeGguf file;
    file.values["tokenizer.ggml.model"] = std::string_view("llama");
    file.values["tokenizer.ggml.tokens"] = GgufArray(std::vector<std::string_view>(texts_.begin(), texts_.end()));
    file.values["tokenizer.ggml.scores"] = GgufArray(scores);
    file.values["tokenizer.ggml.token_type"] =
        GgufArray(cases_.at("pieces").at("types").get<std::vector<std::int64_t>>());
    for (const auto& [key, value] : changes.items()) {
      if (value.is_boolean()) file.values[key] = value.get<bool>();
      if (value.is_string()) file.values[key] = std::string_view(value.get_ref<const std::string&>());
    }
    return file;
  }

  Json cases_ = golden_json("tokenizer_model_ids.json");
  std::vector<std::string> texts_ = cases_.at("pieces").at("tokens").get<std::vector<std::string>>();
};

TEST_P(SentencePieceVocabulary, InAGgufFileGivesTheIdsOfLlamaCpp) {
  const Json& expected = cases_.at(GetParam());
  const auto tokenizer = load_tokenizer_gguf(as_gguf(expected.at("changes")));
  expect_same_ids(*tokenizer, tokenizer->encode(torture_text()), expected.at("ids").get<std::vector<std::int32_t>>());
}

INSTANTIATE_TEST_SUITE_P(Golden, SentencePieceVocabulary, testing::Values("gguf/llama", "gguf/gemma", "gguf/phi3"),
                         [](const auto& name) { return name.param.substr(5); });

class SentencePieceFile : public testing::TestWithParam<std::string> {};

TEST_P(SentencePieceFile, GivesTheIdsOfSentencePiece) {
  const auto tokenizer = load_tokenizer_model(KVS_GOLDEN_DIR "/tokenizer_" + GetParam() + ".model");
  const Json expected = golden_json("tokenizer_model_ids.json").at(GetParam()).at("ids");
  std::size_t line = 0, begin = 0;
  for (std::size_t end = 0; end <= torture_text().size(); ++end) {
    if (end < torture_text().size() && torture_text()[end] != '\n') continue;
    const std::string_view text = std::string_view(torture_text()).substr(begin, end - begin);
    const Json& ids = expected.at(line++);
    begin = end + 1;
    // null: two segmentations are equally good, and rounding decides.
    if (!ids.is_null()) expect_same_ids(*tokenizer, tokenizer->encode(text), ids.get<std::vector<std::int32_t>>());
  }
  EXPECT_EQ(line, expected.size());
}

INSTANTIATE_TEST_SUITE_P(Golden, SentencePieceFile, testing::Values("bpe", "unigram"),
                         [](const auto& name) { return name.param; });

class SmolLm2 : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("KVS_MODEL");
    if (path == nullptr) GTEST_SKIP() << "set KVS_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf to run this test";
    file_ = GgufFile::open(path);
  }
  const std::vector<std::string_view>& strings(std::string_view key) const {
    return std::get<std::vector<std::string_view>>(file_->get_array(key));
  }
  std::unique_ptr<GgufFile> file_;
};

TEST_F(SmolLm2, GgufVocabularyGivesTheIdsOfLlamaCpp) {
  const auto tokenizer = load_tokenizer_gguf(*file_);
  EXPECT_EQ(tokenizer->vocabulary_size(), 49152U);
  EXPECT_EQ(tokenizer->bos(), tokenizer->find("<|im_start|>"));
  expect_same_ids(*tokenizer, tokenizer->encode(torture_text()),
                  golden_json("tokenizer_smollm2_ids.json").at("gguf").at("ids").get<std::vector<std::int32_t>>());
}

TEST_F(SmolLm2, TokenizerJsonOfTheSameVocabularyGivesTheIdsOfTransformers) {
  Json document = {{"version", "1.0"}, {"added_tokens", Json::array()}, {"model", {{"type", "BPE"}}}};
  document["pre_tokenizer"] =
      parse_json(R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
                 R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]})",
                 "test");
  const auto& tokens = strings("tokenizer.ggml.tokens");
  Json::object_t vocabulary;
  vocabulary.reserve(tokens.size());
  constexpr std::size_t kSpecialTokens = 17;  // the first ids of this model
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    static_cast<Json::object_t::Container&>(vocabulary).emplace_back(std::string(tokens[id]), id);
    if (id < kSpecialTokens) document["added_tokens"].push_back({{"id", id}, {"content", tokens[id]}});
  }
  document["model"]["vocab"] = std::move(vocabulary);
  document["model"]["merges"] = strings("tokenizer.ggml.merges");
  const auto tokenizer = parse_tokenizer_json(dump_json(document), "tokenizer.json");
  expect_same_ids(*tokenizer, tokenizer->encode(torture_text()),
                  golden_json("tokenizer_smollm2_ids.json").at("hf").at("ids").get<std::vector<std::int32_t>>());
}

}  // namespace
}  // namespace kvs
