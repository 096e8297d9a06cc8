// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/json.h"
#include "tests/io/temporary_directory.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace kvs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Ids: a 0, b 1, c 2, d 3, the space 4, ab 5, bc 6, abc 7. "b c" has a lower rank than "a b".
Json small_document() {
  return parse_json(R"({
    "version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null,
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false, "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "\u0120": 4, "ab": 5, "bc": 6, "abc": 7},
              "merges": ["b c", "a b"]}})",
                    "test");
}

Json added_token(int id, const std::string& content, const std::vector<std::string>& flags = {}) {
  Json token = {{"id", id}, {"content", content}};
  for (const std::string& flag : flags) token[flag] = true;
  return token;
}

std::unique_ptr<Tokenizer> make(const Json& document) { return parse_tokenizer_json(dump_json(document), "t.json"); }

std::vector<std::int32_t> encode(const Json& document, std::string_view text) { return make(document)->encode(text); }

void expect_error(const std::string& text, ErrorCode code, const std::string& message) {
  try {
    parse_tokenizer_json(text, "t.json");
    ADD_FAILURE() << "no error, expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

void expect_error(const Json& document, ErrorCode code, const std::string& message) {
  expect_error(dump_json(document), code, message);
}

TEST(Bpe, TheLowerRankIsMergedFirst) {
  EXPECT_THAT(encode(small_document(), "abc"), ElementsAre(0, 6));  // a + bc, although ab is further left
  EXPECT_THAT(encode(small_document(), "abd"), ElementsAre(5, 3));
}

TEST(Bpe, OfEqualRanksTheLeftmostIsMergedFirst) {
  Json document = small_document();
  document["model"]["vocab"]["aa"] = 8;
  document["model"]["merges"] = {"a a"};
  EXPECT_THAT(encode(document, "aaaaa"), ElementsAre(8, 8, 0));
}

TEST(Bpe, IgnoreMergesTakesAWordThatIsAToken) {
  Json document = small_document();
  document["model"]["ignore_merges"] = true;
  EXPECT_THAT(encode(document, "abc"), ElementsAre(7));
  EXPECT_THAT(encode(document, "abcd"), ElementsAre(0, 6, 3));  // not a token: merged as usual
}

TEST(Bpe, WordsAreSplitBeforeMerging) {
  Json document = small_document();
  document["model"]["vocab"]["\u0120b"] = 8;
  document["model"]["merges"] = {"\u0120 b", "a \u0120", "b c"};
  document["model"]["vocab"]["a\u0120"] = 9;
  EXPECT_THAT(encode(document, "a bc"), ElementsAre(0, 8, 2));  // "a" | " bc"
  document["pre_tokenizer"]["use_regex"] = false;
  document["model"]["merges"] = {"a \u0120", "\u0120 b", "b c"};
  EXPECT_THAT(encode(document, "a bc"), ElementsAre(9, 6));  // one word
}

TEST(Bpe, AByteThatIsNoTokenIsDroppedBeforeMerging) {
  EXPECT_THAT(encode(small_document(), "bxc"), ElementsAre(6));  // like `tokenizers` without an unknown token
}

TEST(Bpe, AnUnknownTokenStandsForWhatTheVocabularyLacks) {
  Json document = small_document();
  document["model"]["vocab"]["<unk>"] = 8;
  document["model"]["unk_token"] = "<unk>";
  EXPECT_THAT(encode(document, "bxyc"), ElementsAre(1, 8, 8, 2));
  document["model"]["fuse_unk"] = true;
  EXPECT_THAT(encode(document, "bxyc"), ElementsAre(1, 8, 2));
}

TEST(Bpe, MergingALongWordIsNotQuadratic) {
  Json document = small_document();
  std::string longest = "a";
  Json merges = Json::array();
  for (int id = 8; id < 14; ++id) {  // tokens of 2, 4, ... 64 a's
    merges.push_back(longest + " " + longest);
    longest += longest;
    document["model"]["vocab"][longest] = id;
  }
  document["model"]["merges"] = merges;
  const std::size_t letters =
      1UL << 20;  // at a nanosecond each, letters^2 steps take 18 minutes: ctest's limit ends that
  const auto ids = encode(document, std::string(letters, 'a'));
  EXPECT_EQ(ids, std::vector<std::int32_t>(letters / 64, 13));
}

TEST(Tokenizer, PrefixSpaceStandsBeforeEachPieceOfTheStepBefore) {
  Json document = small_document();
  document["pre_tokenizer"] =
      parse_json(R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
                 R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true}]})",
                 "test");
  document["model"]["vocab"]["1"] = 8;
  EXPECT_THAT(encode(document, "a1 b"), ElementsAre(4, 0, 4, 8, 4, 1));
}

TEST(Tokenizer, AddedTokensAreFoundLongestFirstAndNeverSplit) {
  Json document = small_document();
  document["added_tokens"] = {added_token(8, "<a>"), added_token(9, "<a>b")};
  EXPECT_THAT(encode(document, "a<a>c<a>b"), ElementsAre(0, 8, 2, 9));
}

TEST(Tokenizer, AddedTokensTakeWhiteSpaceAsTheirFlagsSay) {
  Json document = small_document();
  document["added_tokens"] = {added_token(8, "<l>", {"lstrip"}), added_token(9, "<r>", {"rstrip"})};
  EXPECT_THAT(encode(document, "a \n\u3000<l> b"), ElementsAre(0, 8, 4, 1));
  EXPECT_THAT(encode(document, "a <r> \t b"), ElementsAre(0, 4, 9, 1));
  EXPECT_THAT(encode(document, "<r> <l>"), ElementsAre(9, 8));  // the space was taken already
}

TEST(Tokenizer, SpecialTokensInWhatUsersWriteArePlainText) {
  Json document = small_document();
  document["added_tokens"] = {added_token(8, "<a>", {"special"}), added_token(9, "<b>")};
  const auto tokenizer = make(document);
  const std::vector<TextRange> literal{{3, 11}};  // a<a>b<b>
  EXPECT_THAT(tokenizer->encode_turns("<a>a<a>b<b><a>", literal), ElementsAre(8, 0, 0, 1, 9, 8));
  EXPECT_THAT(tokenizer->encode("<a>a<a>b<b><a>"), ElementsAre(8, 0, 8, 1, 9, 8));
}

TEST(Tokenizer, SingleWordTokensDoNotStandInsideWords) {
  Json document = small_document();
  document["added_tokens"] = {added_token(5, "ab", {"single_word"})};
  document["model"]["merges"] = Json::array();
  EXPECT_THAT(encode(document, "ab cab abc ab\u00e9 ab."), ElementsAre(5, 4, 2, 0, 1, 4, 0, 1, 2, 4, 0, 1, 4, 5));
}

TEST(Tokenizer, NfcIsAppliedBeforeSplittingAndBeforeNormalizedTokens) {
  Json document = small_document();
  document["normalizer"] = {{"type", "NFC"}};
  // U+00E9 is C3 A9, spelt U+00C3 U+00A9 in the byte alphabet.
  document["model"]["vocab"]["\u00c3"] = 8;
  document["model"]["vocab"]["\u00a9"] = 9;
  EXPECT_THAT(encode(document, "ae\u0301"), ElementsAre(0, 8, 9));
  document["added_tokens"] = {added_token(10, "e\u0301", {"normalized"}), added_token(11, "a\u0308")};
  EXPECT_THAT(encode(document, "\u00e9\u00e4a\u0308"), ElementsAre(10, 8, 11));  // U+00E4 is C3 A4; A4 is no token
}

TEST(Tokenizer, DecodeGivesTheBytesBack) {
  Json document = small_document();
  document["added_tokens"] = {added_token(8, "<\u00e9>")};
  const auto tokenizer = make(document);
  EXPECT_EQ(tokenizer->decode({7, 4, 8, 0}), "abc <\u00e9>a");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("bc<\u00e9> cab")), "bc<\u00e9> cab");
  EXPECT_EQ(tokenizer->decode({9, -1}), "");  // no tokens
}

TEST(Tokenizer, KnowsItsSizeAndItsTokens) {
  Json document = small_document();
  document["model"]["vocab"]["aaa"] = 20;
  document["added_tokens"] = {added_token(0, "a")};
  const auto tokenizer = make(document);
  EXPECT_EQ(tokenizer->vocabulary_size(), 21U);
  EXPECT_EQ(tokenizer->find("aaa"), 20);
  EXPECT_EQ(tokenizer->find("\u0120"), 4);
  EXPECT_EQ(tokenizer->find("x"), -1);
  EXPECT_EQ(tokenizer->bos(), -1);
  EXPECT_EQ(tokenizer->decode({15}), "");  // a gap
  EXPECT_THAT(tokenizer->encode(""), IsEmpty());
}

TEST(Tokenizer, BosIsThatOfTheConfigurationBesideIt) {
  const test::TemporaryDirectory folder;
  Json document = small_document();
  document["added_tokens"] = {added_token(8, "<s>")};
  const auto path = folder.write("tokenizer.json", dump_json(document));
  EXPECT_EQ(load_tokenizer_json(path)->bos(), -1);
  folder.write("tokenizer_config.json", R"({"bos_token": null})");
  EXPECT_EQ(load_tokenizer_json(path)->bos(), -1);
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  EXPECT_EQ(load_tokenizer_json(path)->bos(), 8);
  folder.write("tokenizer_config.json", R"({"bos_token": {"content": "<s>", "lstrip": false}})");
  EXPECT_EQ(load_tokenizer_json(path)->bos(), 8);
}

// AutoTokenizer of Transformers 5.24 does the same: only the template decides, and `add_bos_token` is ignored if there
// is a tokenizer.json.
TEST(Tokenizer, BosIsWhatTheTemplatePutsFirstAndOnlyATemplateAsksForIt) {
  std::int32_t asked = -1;  // the id that begins a text with --bos auto
  const auto bos_of = [&](const char* processor, std::string_view bos = {}) {
    Json document = small_document();
    document["added_tokens"] = {added_token(8, "<s>"), added_token(9, "<t>")};
    document["post_processor"] = parse_json(processor, "test");
    const test::TemporaryDirectory folder;
    if (!bos.empty()) folder.write("tokenizer_config.json", R"({"bos_token": ")" + std::string(bos) + "\"}");
    const auto tokenizer = load_tokenizer_json(folder.write("tokenizer.json", dump_json(document)));
    asked = chosen_bos(*tokenizer, BosChoice::kAuto);
    return tokenizer->bos();
  };
  const char* both = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
    {"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"<s>":{"id":"<s>","ids":[8],"tokens":["<s>"]}}})";
  EXPECT_EQ(bos_of(both), 8);
  EXPECT_EQ(asked, 8);
  EXPECT_EQ(bos_of(both, "<t>"), 8);
  EXPECT_EQ(asked, 8);
  EXPECT_EQ(bos_of("null", "<t>"), 9);
  EXPECT_EQ(asked, -1);
  EXPECT_EQ(bos_of((R"({"type":"Sequence","processors":[{"type":"ByteLevel"},)" + std::string(both) + "]}").c_str()),
            8);
  EXPECT_EQ(asked, 8);
  EXPECT_EQ(bos_of(R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},
    {"SpecialToken":{"id":"<s>","type_id":0}}],"special_tokens":{"<s>":{"ids":[8]}}})"),
            -1);
  EXPECT_EQ(asked, -1);
  EXPECT_EQ(bos_of(R"({"type":"RobertaProcessing","sep":["<t>",9],"cls":["<s>",8]})"), 8);
  EXPECT_THROW(bos_of(R"({"type":"BertProcessing","sep":["<t>",9],"cls":["<s>",10]})"), Error);
}

TEST(Tokenizer, BosIsPutBeforeATextAsChosen) {
  const test::TemporaryDirectory folder;
  Json document = small_document();
  document["added_tokens"] = {added_token(8, "<s>")};
  const auto path = folder.write("tokenizer.json", dump_json(document));
  EXPECT_EQ(chosen_bos(*load_tokenizer_json(path), BosChoice::kAuto), -1);
  EXPECT_EQ(chosen_bos(*load_tokenizer_json(path), BosChoice::kOff), -1);
  EXPECT_THROW(chosen_bos(*load_tokenizer_json(path), BosChoice::kOn), Error);
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>", "add_bos_token": true})");
  EXPECT_EQ(chosen_bos(*load_tokenizer_json(path), BosChoice::kAuto), -1);
  EXPECT_EQ(chosen_bos(*load_tokenizer_json(path), BosChoice::kOn), 8);
  std::vector<std::int32_t> ids{1};
  begin_with(8, ids);
  begin_with(8, ids);
  begin_with(-1, ids);
  EXPECT_THAT(ids, ElementsAre(8, 1));
}

TEST(Tokenizer, InvalidUtf8IsRefused) { EXPECT_THROW(encode(small_document(), "a\xFF"), Error); }

// The numbers in the names below are those of tests/catalogue/README.md.

TEST(TokenizerJson, Bad67MissingOrCutInHalf) {
  EXPECT_THROW(load_tokenizer_json("/nonexistent/tokenizer.json"), Error);
  const std::string whole = dump_json(small_document());
  expect_error(whole.substr(0, whole.size() / 2), ErrorCode::kInput, "t.json: line ");
}

TEST(TokenizerJson, Bad68OtherModels) {
  for (const char* type : {"WordPiece", "WordLevel", "Unigram"}) {  // Unigram does not go with ByteLevel
    Json document = small_document();
    document["model"]["type"] = type;
    expect_error(document, ErrorCode::kUnsupported,
                 "t.json: /model/type: found model \"" + std::string(type) + "\", supported: with ByteLevel, BPE");
  }
}

TEST(TokenizerJson, Bad68ModelOptionsThatChangeIds) {
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{
           {"dropout", 0.1}, {"continuing_subword_prefix", "##"}, {"end_of_word_suffix", "</w>"}}) {
    Json document = small_document();
    document["model"][key] = value;
    expect_error(document, ErrorCode::kUnsupported, "/model/" + key + ": found option \"" + key + "\", supported: ");
  }
}

// Ids by tokenizers 0.23.3.
TEST(TokenizerJson, ByteLevelFallsBackToTheBytesOfAStandIn) {
  Json document = small_document();
  Json& model = document["model"];
  model["byte_fallback"] = true;
  model["vocab"] = {{"a", 0}, {"b", 1}, {"ab", 2}, {"<0xC4>", 3}, {"<0xA0>", 4}, {"<0x63>", 5}, {"\u00c3", 6}};
  model["merges"] = {"a b"};
  document["added_tokens"] = Json::array();
  const auto ids = [&](const char* text) { return parse_tokenizer_json(document.dump(), "t.json")->encode(text); };
  EXPECT_THAT(ids("ab"), ElementsAre(2));
  EXPECT_THAT(ids("ab c a"), ElementsAre(2, 3, 4, 5, 3, 4, 0));  // the replacement of a blank is C4 A0
  EXPECT_THAT(ids("a\u00e9b"), ElementsAre(0, 6, 1));
  EXPECT_THAT(ids("d"), ElementsAre());
  model["unk_token"] = "a";
  EXPECT_THAT(ids("d c"), ElementsAre(0, 3, 4, 5));
  model["fuse_unk"] = true;
  EXPECT_THAT(ids("dcd"), ElementsAre(5, 0));
}

TEST(TokenizerJson, Bad69IdsNegativeFractionalOrHuge) {
  for (const auto& [id, shown] : std::vector<std::pair<Json, std::string>>{
           {-1, "-1"}, {1.5, "1.5"}, {"1", "\"1\""}, {1 << 24, "16777216"}, {1ULL << 63, "9223372036854775808"}}) {
    Json document = small_document();
    document["model"]["vocab"]["ab"] = id;
    expect_error(document, ErrorCode::kInput, "/model/vocab: token \"ab\" has id " + shown + ", expected an integer");
  }
}

TEST(TokenizerJson, Bad70Merges) {
  const auto with = [](Json merge) {
    Json document = small_document();
    document["model"]["merges"].push_back(std::move(merge));
    return document;
  };
  EXPECT_THAT(encode(with(Json{"ab", "c"}), "abc"), ElementsAre(0, 6));
  expect_error(with("a x"), ErrorCode::kInput, "/model/merges/2: token \"x\" of the merge is not in the vocabulary");
  expect_error(with("c d"), ErrorCode::kInput, "token \"cd\" of the merge");
  expect_error(with("ab"), ErrorCode::kInput, "/model/merges/2: found \"ab\", expected two tokens");
  expect_error(with("a b c"), ErrorCode::kInput, "expected two tokens");
  expect_error(with(" b"), ErrorCode::kInput, "token \"\" of the merge");
  expect_error(with(Json{"a", "b", "c"}), ErrorCode::kInput, "expected two tokens");
  expect_error(with(5), ErrorCode::kInput, "/model/merges/2");
}

TEST(TokenizerJson, N71AddedTokensGetTheIdsOfTokenizersNotThoseOfTheFile) {
  Json document = small_document();
  document["added_tokens"] = {added_token(9, "ab"), added_token(5, "<x>"), added_token(8, "<x>")};
  const auto tokenizer = make(document);
  EXPECT_EQ(tokenizer->find("ab"), 5);
  EXPECT_EQ(tokenizer->find("<x>"), 8);
  EXPECT_THAT(tokenizer->notes(), ElementsAre(HasSubstr("\"ab\" has id 5"), HasSubstr("the file says 5")));
}

TEST(TokenizerJson, Bad72UnknownStepsAreNamed) {
  const auto with = [](const char* key, const char* value) {
    Json document = small_document();
    document[key] = parse_json(value, "test");
    return document;
  };
  expect_error(with("normalizer", R"({"type":"BertNormalizer"})"), ErrorCode::kUnsupported,
               "/normalizer/type: found normalizer \"BertNormalizer\", supported: Sequence, Lowercase");
  expect_error(with("normalizer", R"({"type":"Replace","pattern":{"Regex":"(a+)+$"},"content":""})"),
               ErrorCode::kUnsupported, "/normalizer/pattern/Regex: found replace pattern \"(a+)+$\"");
  expect_error(with("pre_tokenizer", R"({"type":"Whitespace"})"), ErrorCode::kUnsupported,
               "pre-tokenizer \"Whitespace\"");
  expect_error(with("post_processor", R"({"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"New"}]})"),
               ErrorCode::kUnsupported,
               "/post_processor/processors/1/type: found post-processor \"New\", supported: Sequence, Temp");
  expect_error(with("pre_tokenizer", R"({"type":"Sequence","pretokenizers":[
                 {"type":"ByteLevel","add_prefix_space":false},{"type":"Digits","individual_digits":true}]})"),
               ErrorCode::kUnsupported, "a pre-tokenizer after \"ByteLevel\"");
  expect_error(with("version", "\"2.0\""), ErrorCode::kUnsupported, "version \"2.0\"");
}

TEST(TokenizerJson, Bad73OnlyKnownSplitPatternsAreRun) {
  Json document = small_document();
  document["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}};
  expect_error(document, ErrorCode::kUnsupported, "/pre_tokenizer/pattern/Regex: found split pattern \"(a+)+$\"");
  document["pre_tokenizer"]["pattern"] = {{"String", ""}};
  expect_error(document, ErrorCode::kInput, "/pre_tokenizer/pattern/String");
  document["pre_tokenizer"]["behavior"] = "Other";
  expect_error(document, ErrorCode::kUnsupported, "split behavior \"Other\"");
}

TEST(TokenizerJson, N74CharactersOutsideTheByteAlphabetAreFoundInNoWord) {
  Json document = small_document();
  document["model"]["vocab"]["a b"] = 8;  // the alphabet spells a space U+0120
  EXPECT_THAT(encode(document, "a b"), ElementsAre(0, 4, 1));
  EXPECT_EQ(make(document)->decode({8}), "a b");
  document["added_tokens"] = {added_token(8, "a b")};  // found as a whole, so its spelling is unchanged
  EXPECT_THAT(encode(document, "ca bc"), ElementsAre(2, 8, 2));
}

TEST(TokenizerJson, Bad75AnEmptyVocabulary) {
  Json document = small_document();
  document["model"]["vocab"] = Json::object();
  expect_error(document, ErrorCode::kInput, "/model/vocab: found no token");
}

TEST(Tokenizer, ABosThatIsNoTokenBecomesOneAndConcernsNoTextWithoutIt) {
  const test::TemporaryDirectory folder;
  const auto path = folder.write("tokenizer.json", dump_json(small_document()));
  const auto ids = load_tokenizer_json(path)->encode("abc");
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  const auto tokenizer = load_tokenizer_json(path);
  EXPECT_EQ(tokenizer->encode("abc"), ids);
  EXPECT_EQ(tokenizer->bos(), 8);  // as AutoTokenizer adds it
}

}  // namespace
}  // namespace kvs
