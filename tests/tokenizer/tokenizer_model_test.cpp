// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/io/piece_type.h"
#include "tests/io/temporary_directory.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// The part of protobuf's wire format that is needed to write a ModelProto.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(0x80 | (value & 0x7F)));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
std::string message(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string number(unsigned number, std::uint64_t value) { return varint(number << 3) + varint(value); }
std::string word(std::uint32_t value) {
  std::string bytes;
  for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

enum Kind : std::uint64_t { kUnigram = 1, kBpe, kWord };

std::string piece(const std::string& text, float score = 0, std::uint64_t type = kNormal) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &score, sizeof(bits));
  return message(1, message(1, text) + varint(2 << 3 | 5) + word(bits) + number(3, type));
}

/// Ids: <unk> 0, <s> 1, </s> 2, a 3, b 4, U+2581 5, ab 6, U+2581 a 7.
std::string pieces() {
  return piece("<unk>", 0, kUnknown) + piece("<s>", 0, kControl) + piece("</s>", 0, kControl) + piece("a", -3) +
         piece("b", -4) + piece("\u2581", -5) + piece("ab", -1) + piece("\u2581a", -2);
}
std::string settings(Kind kind, const std::string& normalizer = "") {
  return message(2, number(3, kind)) + message(3, normalizer);
}

std::unique_ptr<Tokenizer> parse(const std::string& bytes) { return parse_tokenizer_model(bytes, "t.model", {}); }

void expect_model_error(const std::string& bytes, ErrorCode code, const std::string& text) {
  try {
    parse(bytes);
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

/// precompiled_charsmap of one rule, from "A" to `texts` (which end with NUL). It is a double array of 512 units, in
/// which the root leads to state 256 + 'A', and that state's value is unit 128.
std::string charsmap(const std::string& texts, std::uint32_t value = 0, std::uint32_t units = 512) {
  constexpr std::uint32_t kRootBase = 256, kValueAt = 128, kHasValue = 0x100, kIsValue = 0x80000000U;
  std::string array;
  for (std::uint32_t at = 0; at < units; ++at) {
    std::uint32_t unit = 0;
    if (at == 0) unit = kRootBase << 10;
    if (at == (kRootBase ^ 'A')) unit = ((at ^ kValueAt) << 10) | kHasValue | 'A';
    if (at == kValueAt) unit = kIsValue | value;
    array += word(unit);
  }
  return message(2, word(static_cast<std::uint32_t>(array.size())) + array + texts);
}

TEST(TokenizerModel, BpeMergesTheHighestScoreFirst) {
  const auto tokenizer = parse(pieces() + settings(kBpe));
  EXPECT_THAT(tokenizer->encode("ab a"), ElementsAre(5, 6, 7));  // ab before U+2581 a
  EXPECT_EQ(tokenizer->decode({5, 6, 7}), " ab a");
}

TEST(TokenizerModel, UnigramTakesTheBestSum) {
  // U+2581 a, b: -6 as U+2581, ab; with b at -5 it is -7.
  EXPECT_THAT(parse(pieces() + settings(kUnigram))->encode("aab"), ElementsAre(7, 6));
}

TEST(TokenizerModel, ControlAndUnknownPiecesAreFoundInTheText) {
  const auto tokenizer = parse(pieces() + settings(kBpe));
  EXPECT_THAT(tokenizer->encode("a<s>a</s><unk>"), ElementsAre(7, 1, 7, 2, 0));  // a space before each stretch of text
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->find("ab"), 6);
  EXPECT_EQ(tokenizer->vocabulary_size(), 8U);
}

TEST(TokenizerModel, ControlPiecesInWhatUsersWriteArePlainText) {
  const auto tokenizer = parse(pieces() + settings(kBpe));
  const std::vector<TextRange> literal{{3, 8}};
  EXPECT_THAT(tokenizer->encode_turns("<s>a</s></s>", literal), AllOf(Contains(1), Contains(2).Times(1)));
}

TEST(TokenizerModel, TheNormalizersAutomatonRuns) {
  EXPECT_THAT(parse(pieces() + settings(kBpe, charsmap(std::string("b\0", 2))))->encode("aA"), ElementsAre(5, 6));
}

TEST(TokenizerModel, LoadsAFile) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(load_tokenizer_model(folder.write("tokenizer.model", pieces() + settings(kBpe)))->vocabulary_size(), 8U);
  EXPECT_THROW(load_tokenizer_model("/nonexistent/tokenizer.model"), Error);
}

TEST(TokenizerModel, TheConfigurationBesideItAsksForBos) {
  const test::TemporaryDirectory folder;
  const auto path = folder.write("tokenizer.model", pieces() + settings(kBpe));
  EXPECT_EQ(chosen_bos(*load_tokenizer_model(path), BosChoice::kAuto), -1);
  EXPECT_EQ(chosen_bos(*load_tokenizer_model(path), BosChoice::kOn), 1);
  folder.write("tokenizer_config.json", R"({"add_bos_token": true})");
  EXPECT_EQ(chosen_bos(*load_tokenizer_model(path), BosChoice::kAuto), 1);
  folder.write("tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_EQ(chosen_bos(*load_tokenizer_model(path), BosChoice::kAuto), -1);
}

TEST(TokenizerModel, AddedTokensBesideItAreFoundInTheText) {
  const test::TemporaryDirectory folder;
  const auto path = folder.write("tokenizer.model", pieces() + settings(kBpe));
  folder.write("added_tokens.json", R"({"<x>": 8, "ab": 6})");
  const auto tokenizer = load_tokenizer_model(path);
  EXPECT_THAT(tokenizer->encode("a<x>aab"), ElementsAre(7, 8, 7, 6));
  EXPECT_EQ(tokenizer->vocabulary_size(), 9U);
  EXPECT_EQ(tokenizer->decode({8, 6}), "<x>ab");
  EXPECT_THAT(tokenizer->notes(), ElementsAre());
  for (const char* wrong : {R"({"<x>": -1})", R"({"<x>": 16777216})"}) {
    folder.write("added_tokens.json", wrong);
    EXPECT_THROW(load_tokenizer_model(path), Error) << wrong;
  }
}

TEST(TokenizerModel, TokensOfItsConfigurationAreAddedAsTransformersAddsThem) {
  const test::TemporaryDirectory folder;
  const auto path = folder.write("tokenizer.model", pieces() + settings(kBpe));
  folder.write("tokenizer_config.json", R"({"bos_token": "</s>", "additional_special_tokens": ["<y>"],
    "added_tokens_decoder": {"20": {"content": "<x>", "rstrip": true}}})");
  const auto tokenizer = load_tokenizer_model(path);
  EXPECT_THAT(tokenizer->encode("a<x>  a<y>"), ElementsAre(7, 8, 7, 9));
  EXPECT_EQ(tokenizer->bos(), 2);
  EXPECT_THAT(tokenizer->notes(), ElementsAre(HasSubstr("\"<x>\" has id 8")));
}

TEST(TokenizerModel, EveryTruncationIsRefusedOrLoads) {
  const std::string whole = pieces() + settings(kBpe, charsmap(std::string("b\0", 2)));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      parse(whole.substr(0, size))->encode("aA b");
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::kInput || error.code() == ErrorCode::kUnsupported) << error.what();
    }
  }
}

TEST(TokenizerModel, MalformedMessages) {
  expect_model_error("", ErrorCode::kInput, "t.model: found 0 unknown pieces, expected one");
  expect_model_error("not a model", ErrorCode::kInput, "t.model: byte ");
  expect_model_error(varint(1 << 3 | 2) + varint(1ULL << 62), ErrorCode::kInput,
                     "found a field of 4611686018427387904 bytes");
  expect_model_error(varint(1 << 3 | 2) + std::string(10, '\xFF'), ErrorCode::kInput,
                     "found a number of more than 64 bits");
  expect_model_error(varint(1 << 3 | 3), ErrorCode::kInput, "found wire type 3, expected 0, 1, 2 or 5");
  expect_model_error(number(1, 5), ErrorCode::kInput, "field 1 is no message");
}

TEST(TokenizerModel, PiecesMustBeTextsOfTheirOwn) {
  const auto with = [](const std::string& more) { return pieces() + more + settings(kBpe); };
  expect_model_error(with(piece("")), ErrorCode::kInput, "piece 8 \"\" is empty");
  expect_model_error(with(piece("ab")), ErrorCode::kInput, "piece 8 \"ab\" has the text of an earlier one");
  expect_model_error(with(piece(std::string("x\0y", 3))), ErrorCode::kInput, "piece 8 \"x\\x00y\" holds a NUL");
  expect_model_error(with(piece("\xFF")), ErrorCode::kInput, "piece 8 \"\\xff\" is not UTF-8");
  expect_model_error(with(piece("x", std::numeric_limits<float>::quiet_NaN())), ErrorCode::kInput,
                     "score that is not finite");
  expect_model_error(with(piece("x", 0, 7)), ErrorCode::kInput, "has type 7, expected 1 to 6");
  expect_model_error(with(piece("<0x-1>", 0, kByte)), ErrorCode::kInput, "piece 8 \"<0x-1>\" is no byte");
  expect_model_error(with(piece("<u>", 0, kUnknown)), ErrorCode::kInput, "found 2 unknown pieces");
  expect_model_error(piece("<unk>", 0, kUnknown) + settings(kBpe), ErrorCode::kInput, "found no piece of text");
}

TEST(TokenizerModel, OtherModelsAreUnsupported) {
  expect_model_error(pieces() + settings(kWord), ErrorCode::kUnsupported,
                     "t.model: trainer_spec.model_type: found 3, expected 1 (Unigram) or 2 (BPE)");
}

TEST(TokenizerModel, AModelThatTheLibraryCannotEncodeWithIsToBlame) {
  // The library marks spaces with U+2581 and then finds that a control piece represents no text.
  const auto tokenizer =
      parse(piece("<unk>", 0, kUnknown) + piece("\u2581", 0, kControl) + piece("a", -3) + settings(kBpe));
  try {
    tokenizer->encode("a a");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("t.model: found a model that cannot encode"));
  }
}

TEST(TokenizerModel, AnAutomatonThatLeadsOutOfItselfIsRefused) {
  const auto with = [](const std::string& normalizer) { return pieces() + settings(kBpe, normalizer); };
  const std::string text("b\0", 2);
  expect_model_error(with(charsmap(text, 2)), ErrorCode::kInput,
                     "precompiled_charsmap: has state 321 whose text is outside");
  expect_model_error(with(charsmap(text, 0, 300)), ErrorCode::kInput,
                     "precompiled_charsmap: has state 0 that leads out");
  expect_model_error(with(charsmap("b")), ErrorCode::kInput, "precompiled_charsmap: is cut off");
  expect_model_error(with(message(2, word(1U << 30) + "xyz")), ErrorCode::kInput,
                     "states 1073741824 bytes of automaton in 7");
  expect_model_error(with(message(2, "ab")), ErrorCode::kInput, "precompiled_charsmap: has 2 bytes");
}

}  // namespace
}  // namespace kvs
