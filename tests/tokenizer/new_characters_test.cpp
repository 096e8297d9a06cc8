// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/new_characters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenizer/new_characters_table.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/split.h"
#include "tokenizer/text_edges.h"

namespace kvs {
namespace {

std::size_t utf8_bytes(char32_t code) { return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4; }

std::vector<std::string> pieces(std::string_view pattern, std::string_view text, Unicode version = Unicode::k16) {
  std::vector<std::string> found;
  make_regex_split(Regex(pattern, false, version))->split(text, true, [&](std::string_view piece, bool) {
    found.emplace_back(piece);
  });
  return found;
}

using Pieces = std::vector<std::string>;

TEST(NewCharacters, StandInsTakeAsManyBytes) {
  char32_t last = 0;
  for (const NewCharacters& range : kNewCharacters) {
    EXPECT_GT(range.first, last);
    EXPECT_LE(range.first, range.last);
    EXPECT_EQ(utf8_bytes(range.first), utf8_bytes(range.stand_in));
    EXPECT_EQ(utf8_bytes(range.last), utf8_bytes(range.stand_in));
    last = range.last;
  }
}

TEST(NewCharacters, ATextWithoutAnyStaysWhereItIs) {
  std::string storage;
  const std::string_view text = "a\u00e9\u4e2d\U0001F600\u1C88";
  EXPECT_EQ(with_stand_ins(text, Unicode::k16, storage).data(), text.data());
}

// Expected pieces: pre_tokenizers.Split of the package tokenizers 0.23.3, whose Oniguruma has Unicode 16.
TEST(NewCharacters, PatternsSplitByTheClassesOfUnicode16) {
  const std::string_view letters = R"(\p{L}+)", upper = R"([\p{Lu}]+)", marks = R"([\p{L}\p{M}]+)";
  EXPECT_EQ(pieces(letters, "a\u1C89b \uA7CBc 1\U0002EBF0"), (Pieces{"a\u1C89b", " ", "\uA7CBc", " 1", "\U0002EBF0"}));
  EXPECT_EQ(pieces(upper, "a\u1C89\u1C8A\uA7CB"), (Pieces{"a", "\u1C89", "\u1C8A", "\uA7CB"}));
  EXPECT_EQ(pieces(marks, "a\u0897.\U00010D69"), (Pieces{"a\u0897", ".", "\U00010D69"}));
  EXPECT_EQ(pieces(R"(\p{N}+)", "1\U00010D40a"), (Pieces{"1\U00010D40", "a"}));
  EXPECT_EQ(pieces(R"(\p{S}+)", "a\U0001FAE9a"), (Pieces{"a", "\U0001FAE9", "a"}));
  EXPECT_EQ(pieces(R"(\p{P}+)", "a\u1B4Ea"), (Pieces{"a", "\u1B4E", "a"}));
}

TEST(NewCharacters, EachProgramHasItsUnicode) {
  const std::string_view letters = R"(\p{L}+)", numbers = R"(\p{N}+)";
  EXPECT_EQ(pieces(letters, "a\U0002EBF0", Unicode::k15), Pieces{"a\U0002EBF0"});        // of 15.1
  EXPECT_EQ(pieces(letters, "a\u1C89", Unicode::k15), (Pieces{"a", "\u1C89"}));          // of 16.0
  EXPECT_EQ(pieces(numbers, "1\U00011DE0", Unicode::k16), (Pieces{"1", "\U00011DE0"}));  // of 17.0
  EXPECT_EQ(pieces(numbers, "1\U00011DE0", Unicode::k17), Pieces{"1\U00011DE0"});
}

TEST(NewCharacters, CountAsPartsOfWords) {
  EXPECT_TRUE(starts_with_word("\u1C89."));
  EXPECT_TRUE(ends_with_word(".\U0002EBF0"));
  EXPECT_FALSE(starts_with_word(".\u1C89"));
  EXPECT_FALSE(starts_with_word(""));
}

std::string normalized(std::unique_ptr<const Normalizer> step, std::string_view text) {
  Normalizers steps;
  steps.push_back(std::move(step));
  std::string storage;
  return std::string(normalize(steps, text, storage));
}

TEST(NewCharacters, LowerCaseIsThatOfUnicode17) {
  EXPECT_EQ(normalized(make_lowercase(), "A\u1C89\uA7CB\uA7CC\uA7DC\U00010D50\U00010D65\U00016EA0"),
            "a\u1C8A\u0264\uA7CD\u019B\U00010D70\U00010D85\U00016EBB");
  EXPECT_EQ(normalized(make_lowercase(), "\u1C8A\U00010D66\uA7CD"), "\u1C8A\U00010D66\uA7CD");
}

// normalizers.NFC etc. of tokenizers 0.23.3, whose tables are of Unicode 9.
TEST(NewCharacters, NormalFormsAreThoseOfUnicode9) {
  const auto form = [](UnicodeForm wanted, std::string_view text) {
    return normalized(make_unicode_normalizer(wanted), text);
  };
  EXPECT_EQ(form(UnicodeForm::kNfc, "a\u0345\u0316"), "a\u0316\u0345");  // classes 240 and 220 are reordered
  EXPECT_EQ(form(UnicodeForm::kNfc, "a\u0345\u0899"), "a\u0345\u0899");  // Unicode 14
  EXPECT_EQ(form(UnicodeForm::kNfc, "e\u0301\u0899e\u0301"), "\u00e9\u0899\u00e9");
  EXPECT_EQ(form(UnicodeForm::kNfc, "\U00011935\U00011930"), "\U00011935\U00011930");  // U+11938 since Unicode 13
  EXPECT_EQ(form(UnicodeForm::kNfd, "\U00011938"), "\U00011938");
  EXPECT_EQ(form(UnicodeForm::kNfkc, "\u32FF\uFB01"), "\u32FFfi");  // U+32FF since Unicode 12.1
  EXPECT_EQ(form(UnicodeForm::kNfkd, "\U0001FBF0\u00bd"),
            "\U0001FBF0"
            "1\u20442");
}

}  // namespace
}  // namespace kvs
