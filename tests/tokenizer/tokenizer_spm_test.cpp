// SPDX-License-Identifier: Apache-2.0
// A SentencePiece-like vocabulary in a GGUF file (tokenizer.ggml.model = "llama") and in a tokenizer.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/json.h"
#include "tests/io/fake_gguf.h"
#include "tests/io/piece_type.h"
#include "tests/io/temporary_directory.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace kvs {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int32_t kBytes = 8;  // the id of <0x00>

class TokenizerSpm : public testing::Test {
 protected:
  /// Ids: <unk> 0, <s> 1, a 2, b 3, U+2581 4, ab 5, bb 6, U+2581 a 7, the bytes from 8 on.
  TokenizerSpm() {
    texts_ = {"<unk>", "<s>", "a", "b", "\u2581", "ab", "bb", "\u2581a"};
    types_ = {2, kControl, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal};
    scores_ = {0, 0, -9, -9, -9, -2, -1, -3};
    for (int byte = 0; byte < 256; ++byte) add(name_of_byte_token(static_cast<unsigned char>(byte)), 0, kByte);
    file_.values["tokenizer.ggml.model"] = std::string_view("llama");
  }

  void add(const std::string& text, double score, std::int64_t type = kNormal) {
    texts_.push_back(text);
    scores_.push_back(score);
    types_.push_back(type);
  }
  std::unique_ptr<Tokenizer> load() {
    file_.values["tokenizer.ggml.tokens"] = GgufArray(std::vector<std::string_view>(texts_.begin(), texts_.end()));
    file_.values["tokenizer.ggml.token_type"] = GgufArray(types_);
    if (!file_.values.contains("tokenizer.ggml.scores")) file_.values["tokenizer.ggml.scores"] = GgufArray(scores_);
    return load_tokenizer_gguf(file_);
  }
  std::vector<std::int32_t> encode(std::string_view text) { return load()->encode(text); }

  void expect_error(ErrorCode code, const std::string& message) {
    try {
      load();
      ADD_FAILURE() << "no error, expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }

  FakeGguf file_;
  std::vector<std::string> texts_;
  std::vector<std::int64_t> types_;
  std::vector<double> scores_;
};

TEST_F(TokenizerSpm, ControlTokensAreNotMergedFromWhatUsersWrite) {
  add("<s", -1);
  const auto tokenizer = load();
  const std::vector<TextRange> literal{{3, 6}};
  EXPECT_THAT(tokenizer->encode_turns("<s><s>", literal), AllOf(Contains(1).Times(1), Contains(264)));
}

TEST_F(TokenizerSpm, BosBeginsATextUnlessTheMetadataSayNo) {
  const auto asked = [&] { return chosen_bos(*load(), BosChoice::kAuto); };
  EXPECT_EQ(asked(), 1);  // llama.cpp's id if the file names none
  file_.values["tokenizer.ggml.bos_token_id"] = std::uint64_t{2};
  EXPECT_EQ(asked(), 2);
  file_.values["tokenizer.ggml.add_bos_token"] = false;
  EXPECT_EQ(asked(), -1);
  EXPECT_EQ(chosen_bos(*load(), BosChoice::kOn), 2);
}

TEST_F(TokenizerSpm, TheHighestScoreIsMergedFirst) {
  file_.values["tokenizer.ggml.add_space_prefix"] = false;
  EXPECT_THAT(encode("abb"), ElementsAre(2, 6));  // bb, although ab is further left
  EXPECT_THAT(encode("bbb"), ElementsAre(6, 3));  // the leftmost of equal scores
  EXPECT_THAT(encode(" ab"), ElementsAre(4, 5));  // ab before U+2581 a
}

TEST_F(TokenizerSpm, ASpaceComesBeforeEveryStretchOfTextUnlessTheFileSaysNo) {
  EXPECT_THAT(encode("b<s>a"), ElementsAre(4, 3, 1, 7));
  file_.values["tokenizer.ggml.add_space_prefix"] = false;
  EXPECT_THAT(encode("b<s>a"), ElementsAre(3, 1, 2));
}

TEST_F(TokenizerSpm, ACharacterThatIsNoTokenBecomesItsBytes) {
  file_.values["tokenizer.ggml.add_space_prefix"] = false;
  EXPECT_THAT(encode("a\u00e9\nb"), ElementsAre(2, kBytes + 0xC3, kBytes + 0xA9, kBytes + 0x0A, 3));
  EXPECT_EQ(load()->decode({2, kBytes + 0xC3, kBytes + 0xA9, 7}), "a\u00e9 a");
}

TEST_F(TokenizerSpm, ACharacterThatIsNoTokenMayStillBePartOfOne) {
  file_.values["tokenizer.ggml.add_space_prefix"] = false;
  add("ax", -1);
  const std::int32_t id = kBytes + 256;
  EXPECT_THAT(encode("axx"), ElementsAre(id, kBytes + 'x'));
}

TEST_F(TokenizerSpm, BytesAreNotTakenForTheTextOfTheirNames) {
  file_.values["tokenizer.ggml.add_space_prefix"] = false;
  add("<0x0A>b", 9);  // the name, merged from text, could be merged further; the byte 0A cannot
  EXPECT_THAT(encode("\nb"), ElementsAre(kBytes + 0x0A, 3));
}

TEST_F(TokenizerSpm, TokensThatHoldASpaceInsideAreFound) {
  file_.values["tokenizer.ggml.add_space_prefix"] = false;
  add("b\u2581", -0.5);  // words may not be cut before the marker now
  EXPECT_THAT(encode("ab a"), ElementsAre(2, kBytes + 256, 2));
}

TEST_F(TokenizerSpm, Phi3StripsAfterSpecialTokensByItsName) {
  EXPECT_THAT(encode("b</s> \n a"), testing::Not(ElementsAre(4, 3, kBytes + 256, 7)));
  add("</s>", 0, kControl);
  file_.values.erase("tokenizer.ggml.scores");
  EXPECT_THAT(encode("b</s> a"), ElementsAre(4, 3, kBytes + 256, 4, 7));
  file_.values["general.name"] = std::string_view("Phi-3-Mini");
  EXPECT_THAT(encode("b</s> \n a"), ElementsAre(4, 3, kBytes + 256, 7));
  EXPECT_THAT(encode("b<s> a"), ElementsAre(4, 3, 1, 4, 7));  // not after this one
}

TEST_F(TokenizerSpm, Bad48ScoresMustFitTheTokens) {
  scores_.pop_back();
  expect_error(ErrorCode::kInput, "tokenizer.ggml.scores: found 263 scores, expected 264, one per token");
  file_.values["tokenizer.ggml.scores"] = GgufArray(std::vector<std::string_view>(264, "1"));
  expect_error(ErrorCode::kInput, "tokenizer.ggml.scores: expected an array of numbers");
  scores_.push_back(std::numeric_limits<double>::quiet_NaN());
  file_.values["tokenizer.ggml.scores"] = GgufArray(scores_);
  expect_error(ErrorCode::kInput, "the score of token 263 \"<0xFF>\" is not finite");
}

TEST_F(TokenizerSpm, IntegerScoresAreScores) {
  file_.values["tokenizer.ggml.add_space_prefix"] = false;
  file_.values["tokenizer.ggml.scores"] = GgufArray(std::vector<std::int64_t>(264, 0));
  EXPECT_THAT(encode("abb"), ElementsAre(5, 3));  // all equal: the leftmost
}

TEST_F(TokenizerSpm, Bad48AByteWithoutATokenIsUnsupported) {
  texts_.back() = "<0x-1>";
  expect_error(ErrorCode::kUnsupported, "found no token <0xFF>, supported: ");
}

TEST_F(TokenizerSpm, VeryLongTokensAreUnsupported) {
  add(std::string(513, 'a'), 0);
  expect_error(ErrorCode::kUnsupported, "has 513 bytes, expected at most 512");
}

/// Ids: <unk> 0, a 1, b 2, U+2581 3, ab 4, U+2581 a 5, <0xC3> 6, <0xA9> 7.
Json marked_document() {
  return parse_json(
      R"({"added_tokens": [], "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
    "vocab": {"<unk>": 0, "a": 1, "b": 2, "\u2581": 3, "ab": 4, "\u2581a": 5, "<0xC3>": 6, "<0xA9>": 7},
    "merges": ["a b", "\u2581 a"]}})",
      "test");
}

std::vector<std::int32_t> ids_of(const Json& document, std::string_view text) {
  return parse_tokenizer_json(dump_json(document), "t.json")->encode(text);
}

Json metaspace(const char* scheme, bool split) {
  return {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", split}};
}

TEST(MarkedBpe, BytesStandForACharacterOnlyIfAllOfThemAreTokens) {
  EXPECT_THAT(ids_of(marked_document(), "a\u00e9b"), ElementsAre(1, 6, 7, 2));
  EXPECT_THAT(ids_of(marked_document(), "a\u00e8\u00e8b"), ElementsAre(1, 0, 2));  // no <0xA8>; one for the run
}

TEST(MarkedBpe, BytesOvertakeAnUnknownTokenBeforeThem) {
  EXPECT_THAT(ids_of(marked_document(), "\u00e8\u00e9b"), ElementsAre(6, 7, 0, 2));  // `tokenizers` does the same
}

TEST(MarkedBpe, PrependAndReplaceMarkEveryStretchOfText) {
  Json document = marked_document();
  document["normalizer"] = parse_json(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},
                     {"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]})",
                                      "test");
  document["added_tokens"] = {{{"id", 0}, {"content", "<unk>"}}};
  EXPECT_THAT(ids_of(document, "a b<unk>a"), ElementsAre(5, 3, 2, 0, 5));
}

TEST(MarkedBpe, MetaspacePrependsByItsScheme) {
  Json document = marked_document();
  document["added_tokens"] = {{{"id", 0}, {"content", "<unk>"}}};
  document["pre_tokenizer"] = metaspace("always", true);
  EXPECT_THAT(ids_of(document, "a<unk>a"), ElementsAre(5, 0, 5));
  document["pre_tokenizer"] = metaspace("first", true);
  EXPECT_THAT(ids_of(document, "a<unk>a"), ElementsAre(5, 0, 1));
  EXPECT_THAT(ids_of(document, "<unk>a"), ElementsAre(0, 1));
  document["pre_tokenizer"] = metaspace("never", true);
  EXPECT_THAT(ids_of(document, "a a"), ElementsAre(1, 5));
}

TEST(MarkedBpe, MetaspaceSplitsAtEveryMarkerOrNotAtAll) {
  Json document = marked_document();
  document["model"]["vocab"]["\u2581\u2581"] = 8;
  document["model"]["merges"] = {"\u2581 \u2581"};
  document["pre_tokenizer"] = metaspace("never", true);
  EXPECT_THAT(ids_of(document, "a  a"), ElementsAre(1, 3, 3, 1));
  document["pre_tokenizer"] = metaspace("never", false);
  EXPECT_THAT(ids_of(document, "a  a"), ElementsAre(1, 8, 1));
}

TEST(MarkedBpe, ContradictingMetaspaceOptionsAreRefused) {
  Json document = marked_document();
  document["pre_tokenizer"] = metaspace("first", true);
  document["pre_tokenizer"]["add_prefix_space"] = false;
  EXPECT_THROW(ids_of(document, "a"), Error);
  document["pre_tokenizer"] = metaspace("first", true);
  document["pre_tokenizer"]["replacement"] = "ab";
  EXPECT_THROW(ids_of(document, "a"), Error);
  document["pre_tokenizer"] = metaspace("sometimes", true);
  EXPECT_THROW(ids_of(document, "a"), Error);
}

TEST(Unigram, TakesTheBestSumAndOnePenaltyForEachUnknownCharacter) {
  Json document = parse_json(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab":
    [["<unk>", 0], ["a", -1], ["b", -1], ["ab", -3], ["abc", -12.5]]}})",
                             "test");
  EXPECT_THAT(ids_of(document, "ab"), ElementsAre(1, 2));  // -2 is more than -3
  EXPECT_THAT(ids_of(document, "axyb"), ElementsAre(1, 0, 2));
  // abc: -12.5; a, b and an unknown c: -2 + (-12.5 - 10).
  EXPECT_THAT(ids_of(document, "abc"), ElementsAre(4));
}

TEST(Unigram, ScoresThatTheTokenizersPackageReadsAsEqualTie) {
  // 13112847118503351 and ...53 lie above 2^53, and both round to a double that divided by 10^15 is 13.112847118503351.
  Json document = parse_json(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab":
    [["<unk>", 0], ["a", -13.112847118503351], ["b", 0], ["ab", -13.112847118503353]]}})",
                             "test");
  EXPECT_THAT(ids_of(document, "ab"), ElementsAre(3));  // the longer piece is found first
  document["model"]["vocab"][3][1] = -13.112847118503357;
  EXPECT_THAT(ids_of(document, "ab"), ElementsAre(1, 2));
}

// Ids by tokenizers 0.23.3.
TEST(Unigram, OfAPieceThatIsThereTwiceTheLastCounts) {
  Json document = parse_json(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab":
    [["<unk>", 0], ["a", -1], ["b", -1], ["ab", -1.5], ["c", -3], ["ab", -0.5]]}})",
                             "test");
  EXPECT_THAT(ids_of(document, "abc"), ElementsAre(5, 4));
  document["model"]["vocab"][5][1] = -2.5;  // now a and b are better, though the first ab would be best
  EXPECT_THAT(ids_of(document, "abab"), ElementsAre(1, 2, 1, 2));
  document["model"]["vocab"][3][1] = -2.5;
  document["model"]["vocab"][5][1] = -1.5;
  EXPECT_THAT(ids_of(document, "abab"), ElementsAre(5, 5));
  const auto tokenizer = parse_tokenizer_json(document.dump(), "t.json");
  EXPECT_EQ(tokenizer->vocabulary_size(), 6U);
  document["model"]["vocab"] = parse_json(R"([["<unk>", 0], ["a", -1], ["b", -1], ["<unk>", -5]])", "test");
  EXPECT_THAT(ids_of(document, "axb"), ElementsAre(1, 0, 2));  // unk_id is the id of unknown text
  EXPECT_THAT(ids_of(document, "a<unk>b"), ElementsAre(1, 3, 2));
}

TEST(Unigram, MalformedVocabulariesAreRefused) {
  const auto refused = [](const char* vocabulary, const char* unknown = "0") {
    const std::string text =
        std::string(R"({"model":{"type":"Unigram","unk_id":)") + unknown + R"(,"vocab":)" + vocabulary + "}}";
    try {
      parse_tokenizer_json(text, "t.json");
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refused("[]"), HasSubstr("/model/vocab: found no token"));
  EXPECT_THAT(refused(R"([["a"]])"), HasSubstr("expected a token and its score"));
  EXPECT_THAT(refused(R"([["", 0]])"), HasSubstr("expected a token of 1 to 512 bytes"));
  EXPECT_THAT(refused(R"([["a", 0]])", "1"), HasSubstr("/model/unk_id"));
}

// Ids from tokenizers 0.23.3.
TEST(Unigram, WithoutAnUnknownTokenTheTextThatNeedsItIsAnError) {
  Json document = parse_json(R"({"model": {"type": "Unigram", "byte_fallback": true, "vocab":
    [["a", -1], ["b", -1], ["ab", -3], ["xy", -2], ["<0x63>", -5]]}})",
                             "test");
  for (const bool is_null : {true, false}) {
    if (is_null) document["model"]["unk_id"] = nullptr;
    EXPECT_THAT(ids_of(document, "abb"), ElementsAre(0, 1, 1));
    for (const char* text : {"axb", "xy", "c"})  // "c", although its byte has a token
      test::expect_error(ErrorCode::kInput, "t.json: /model/unk_id: found none", [&] { (void)ids_of(document, text); });
    document["model"].erase("unk_id");
  }
}

}  // namespace
}  // namespace kvs
