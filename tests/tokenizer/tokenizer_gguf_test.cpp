// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "tests/io/fake_gguf.h"
#include "tests/io/piece_type.h"
#include "tokenizer/tokenizer.h"

namespace kvs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TokenizerGguf : public testing::Test {
 protected:
  /// Ids: a 0, b 1, c 2, the space 3, <s> 4 (control), bc 5.
  TokenizerGguf() {
    file_.values["tokenizer.ggml.model"] = std::string_view("gpt2");
    file_.values["tokenizer.ggml.pre"] = std::string_view("gpt-2");
    apply();
  }

  void apply() {
    file_.values["tokenizer.ggml.tokens"] = GgufArray(tokens_);
    file_.values["tokenizer.ggml.token_type"] = GgufArray(types_);
    file_.values["tokenizer.ggml.merges"] = GgufArray(merges_);
  }
  void add_token(std::string_view text, std::int64_t type = kNormal) {
    tokens_.push_back(text);
    types_.push_back(type);
    apply();
  }

  std::vector<std::int32_t> encode(std::string_view text) const { return load_tokenizer_gguf(file_)->encode(text); }

  void expect_error(ErrorCode code, const std::string& message) const {
    try {
      load_tokenizer_gguf(file_);
      ADD_FAILURE() << "no error, expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }

  FakeGguf file_;
  std::vector<std::string_view> tokens_ = {"a", "b", "c", "\u0120", "<s>", "bc"};
  std::vector<std::int64_t> types_ = {kNormal, kNormal, kNormal, kNormal, kControl, kNormal};
  std::vector<std::string_view> merges_ = {"b c"};
};

TEST_F(TokenizerGguf, SplitsSpecialTokensOutAndMergesTheRest) {
  EXPECT_THAT(encode("a<s>bc <s"), ElementsAre(0, 4, 5, 3));  // "<" is not a token here, nor is "s" alone
}

TEST_F(TokenizerGguf, ControlTokensInWhatUsersWriteArePlainText) {
  add_token("<u>", kUserDefined);
  const auto tokenizer = load_tokenizer_gguf(file_);
  const std::vector<TextRange> literal{{0, 4}, {7, 14}};
  EXPECT_THAT(tokenizer->encode_turns("a<s><s>b<s><u>", literal), ElementsAre(0, 4, 1, 6));
  EXPECT_THAT(tokenizer->encode("a<s><s>b<s><u>"), ElementsAre(0, 4, 4, 1, 4, 6));
}

TEST_F(TokenizerGguf, TheLongestSpecialTokenIsCutOutFirstWhereverItStands) {
  add_token("bca", kUserDefined);
  add_token("cabc", kUnknown);
  // From left to right "bca" would win; llama.cpp takes the longer "cabc" first.
  EXPECT_THAT(encode("bcabc"), ElementsAre(1, 7));
}

TEST_F(TokenizerGguf, UnusedTokensAreOrdinaryTextUnlessTheyLookLikeAnEnd) {
  add_token("ab", kUnused);
  add_token("<|im_end|>", kNormal);
  EXPECT_THAT(encode("ab<|im_end|>"), ElementsAre(0, 1, 7));
}

TEST_F(TokenizerGguf, AByteThatIsNoTokenKeepsItsPlaceUntilTheMergesAreDone) {
  EXPECT_THAT(encode("bxc"), ElementsAre(1, 2));  // not bc
}

TEST_F(TokenizerGguf, AMergeThatIsNoTokenFallsApartIntoItsAsciiBytes) {
  merges_ = {"a b", "\u0120 c"};
  apply();
  // "ab" and " c" are not tokens: a and b are, as one printable character each; the space's replacement is not ASCII.
  EXPECT_THAT(encode("ab c"), ElementsAre(0, 1, 2));
}

TEST_F(TokenizerGguf, OfTwoEqualMergesTheFirstCounts) {
  add_token("ab");
  merges_ = {"b c", "a b", "b c"};
  apply();
  EXPECT_THAT(encode("abc"), ElementsAre(0, 5));
}

TEST_F(TokenizerGguf, BosIsThatOfTheMetadata) {
  EXPECT_EQ(load_tokenizer_gguf(file_)->bos(), -1);
  file_.values["tokenizer.ggml.bos_token_id"] = std::uint64_t{4};
  EXPECT_EQ(load_tokenizer_gguf(file_)->bos(), 4);
  EXPECT_THAT(load_tokenizer_gguf(file_)->notes(), IsEmpty());
}

TEST_F(TokenizerGguf, ABosThatIsNoTokenIsNoneWithANote) {
  file_.values["tokenizer.ggml.bos_token_id"] = std::uint64_t{6};
  file_.values["tokenizer.ggml.add_bos_token"] = true;
  const auto tokenizer = load_tokenizer_gguf(file_);
  EXPECT_EQ(tokenizer->bos(), -1);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_THAT(tokenizer->notes(),
              ElementsAre(HasSubstr("tokenizer.ggml.bos_token_id: found 6, expected an id below 6: as in llama.cpp")));
  file_.values["tokenizer.ggml.bos_token_id"] = std::string_view("<s>");
  expect_error(ErrorCode::kInput, "tokenizer.ggml.bos_token_id");
}

TEST_F(TokenizerGguf, BosBeginsATextWhereTheMetadataOrLlamaCppsDefaultsSaySo) {
  const auto asked = [&] { return chosen_bos(*load_tokenizer_gguf(file_), BosChoice::kAuto); };
  const std::string kAdd = "tokenizer.ggml.add_bos_token";
  file_.values["tokenizer.ggml.bos_token_id"] = std::uint64_t{4};
  for (const char* pre :
       {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "tekken"}) {
    file_.values["tokenizer.ggml.pre"] = std::string_view(pre);
    EXPECT_EQ(asked(), 4) << pre;
  }
  for (const char* pre :
       {"default", "gpt-2", "smollm", "qwen2", "glm4", "chatglm-bpe", "dbrx", "gpt-4o", "deepseek-v3"}) {
    file_.values["tokenizer.ggml.pre"] = std::string_view(pre);
    EXPECT_EQ(asked(), -1) << pre;
  }
  file_.values[kAdd] = true;
  EXPECT_EQ(asked(), 4);
  file_.values.erase("tokenizer.ggml.bos_token_id");
  EXPECT_EQ(asked(), -1);  // nothing says which
  file_.values["tokenizer.ggml.bos_token_id"] = std::uint64_t{4};
  file_.values["tokenizer.ggml.pre"] = std::string_view("llama-bpe");
  file_.values[kAdd] = false;
  EXPECT_EQ(asked(), -1);
}

TEST_F(TokenizerGguf, DecodesSpecialTokensAsWritten) {
  add_token("<\uff5c>", kControl);  // outside the byte alphabet, but found as a whole
  EXPECT_EQ(load_tokenizer_gguf(file_)->decode({5, 3, 6, 4}), "bc <\uff5c><s>");
}

TEST_F(TokenizerGguf, OtherModelsAndSplitsAreUnsupportedByName) {
  file_.values["tokenizer.ggml.pre"] = std::string_view("new-pre\n");
  expect_error(ErrorCode::kUnsupported,
               "fake.gguf: tokenizer.ggml.pre: found pre-tokenizer \"new-pre\\x0a\", supported: ");
  file_.values["tokenizer.ggml.model"] = std::string_view("rwkv");
  expect_error(ErrorCode::kUnsupported,
               "tokenizer.ggml.model: found \"rwkv\", expected \"gpt2\", \"llama\" or \"gemma4\"");
}

// As in llama.cpp: spaces become markers, a line is one word, a run of line breaks that is a token is not merged.
TEST_F(TokenizerGguf, Gemma4MergesTheCharactersOfLines) {
  file_.values["tokenizer.ggml.model"] = std::string_view("gemma4");
  file_.values.erase("tokenizer.ggml.pre");
  tokens_ = {"<unk>", "\u2581", "a", "b", "\u2581a", "\n", "\n\n\n", "<0xC3>", "<0xA9>", "<0x0A>", "b\u2581a"};
  types_ = {kUnknown, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal, kByte, kByte, kByte, kNormal};
  merges_ = {"\u2581 a", "b \u2581a", "\n \n"};
  apply();
  EXPECT_THAT(encode("b a"), ElementsAre(10));   // a merge over the space
  EXPECT_THAT(encode(" b"), ElementsAre(1, 3));  // no space is put before a text
  EXPECT_THAT(encode("a  a"), ElementsAre(2, 1, 4));
  EXPECT_THAT(encode("\n\n\n"), ElementsAre(6));
  EXPECT_THAT(encode("\n\n"), ElementsAre(9, 9));  // merged to a text that is no token: its bytes
  EXPECT_THAT(encode("b\na"), ElementsAre(3, 5, 2));
  EXPECT_THAT(encode("\u00e9"), ElementsAre(7, 8));
  EXPECT_THAT(encode("\u00e8"), ElementsAre(7));  // a byte without a token is lost
  EXPECT_EQ(load_tokenizer_gguf(file_)->decode({10, 7, 8, 6}), "b a\u00e9\n\n\n");
  EXPECT_FALSE(load_tokenizer_gguf(file_)->adds_bos());
}

TEST_F(TokenizerGguf, TypesThatDoNotFitTheTokensAreRefused) {
  types_.pop_back();
  apply();
  expect_error(ErrorCode::kInput, "tokenizer.ggml.token_type: found 5 types, expected 6");
  file_.values["tokenizer.ggml.token_type"] = GgufArray(std::vector<double>(6, 1.0));
  expect_error(ErrorCode::kInput, "tokenizer.ggml.token_type: expected an array of integers");
}

TEST_F(TokenizerGguf, SpecialTokensThatWouldPartACharacterAreRefused) {
  add_token("\x80", 3);
  expect_error(ErrorCode::kInput, "token 6 \"\\x80\" is special and not UTF-8");
}

TEST_F(TokenizerGguf, ATokenOutsideTheByteAlphabetIsMadeByNoWord) {
  add_token("b c");
  EXPECT_THAT(encode("b c"), ElementsAre(1, 3, 2));
  EXPECT_EQ(load_tokenizer_gguf(file_)->decode({6}), "b c");
}

TEST_F(TokenizerGguf, TokensMustBeUnique) {
  add_token("a");
  apply();
  expect_error(ErrorCode::kInput, "token 6 \"a\" has the text of an earlier token");
  tokens_.clear();
  apply();
  expect_error(ErrorCode::kInput, "tokenizer.ggml.tokens: found no token");
  file_.values["tokenizer.ggml.tokens"] = GgufArray(std::vector<std::int64_t>{1});
  expect_error(ErrorCode::kInput, "expected one of strings");
}

TEST_F(TokenizerGguf, MergesOfTextsThatNoWordHasChangeNothing) {
  for (const std::string_view merge : {"bc", "", "b c a", " c", "b ", "b \u3000"}) {
    merges_ = {merge, "b c"};
    apply();
    EXPECT_THAT(encode("abc c"), ElementsAre(0, 5, 3, 2)) << merge;
  }
}

}  // namespace
}  // namespace kvs
