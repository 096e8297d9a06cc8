// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/error.h"

namespace kvs {
namespace {

template <class... Steps>
std::string normalized(std::string_view text, Steps... steps) {
  Normalizers all;
  (all.push_back(std::move(steps)), ...);
  std::string storage;
  return std::string(normalize(all, text, storage));
}

TEST(Normalizer, UnicodeFormsOfTheStandardsExamples) {
  // UAX 15, figures 3 to 6: the ligature fi, 2 to the 5th, long s with dot above and dot below.
  const std::string fi = "\uFB01", power = "2\u2075", long_s = "\u1E9B\u0323";
  const auto in = [](std::string_view text, UnicodeForm form) {
    return normalized(text, make_unicode_normalizer(form));
  };
  EXPECT_EQ(in(fi, UnicodeForm::kNfc), fi);
  EXPECT_EQ(in(fi, UnicodeForm::kNfkc), "fi");
  EXPECT_EQ(in(power, UnicodeForm::kNfd), power);
  EXPECT_EQ(in(power, UnicodeForm::kNfkd), "25");
  EXPECT_EQ(in(long_s, UnicodeForm::kNfc), long_s);
  EXPECT_EQ(in(long_s, UnicodeForm::kNfd), "\u017F\u0323\u0307");
  EXPECT_EQ(in(long_s, UnicodeForm::kNfkc), "\u1E69");
  EXPECT_EQ(in(long_s, UnicodeForm::kNfkd), "s\u0323\u0307");
}

TEST(Normalizer, LowercaseIsByCharacterInFull) {
  EXPECT_EQ(normalized("AbZ \u00C4\u03A3 \u0130 \u01C5 \u1E9E", make_lowercase()),
            "abz \u00E4\u03C3 i\u0307 \u01C6 \u00DF");
}

TEST(Normalizer, PrependLeavesNothingAsItIs) {
  EXPECT_EQ(normalized("a", make_prepend("> ")), "> a");
  EXPECT_EQ(normalized("", make_prepend("> ")), "");
}

TEST(Normalizer, ReplaceTakesOccurrencesFromTheLeft) {
  EXPECT_EQ(normalized("aaaba", make_replace("aa", "c")), "caba");
  EXPECT_EQ(normalized("a  b   c d", make_regex_replace(Regex(" {2,}"), "$0")),
            "a$0b$0c d");  // the content is not a template
}

TEST(Normalizer, StripTakesUnicodesWhiteSpace) {
  const std::string text = "\u3000 a b\u0085\n";
  EXPECT_EQ(normalized(text, make_strip(true, false)), "a b\u0085\n");
  EXPECT_EQ(normalized(text, make_strip(false, true)), "\u3000 a b");
  EXPECT_EQ(normalized("\u200b a \u200b", make_strip(true, true)), "\u200b a \u200b");  // U+200B is none
}

TEST(Normalizer, StepsRunInOrder) {
  EXPECT_EQ(normalized("A ", make_replace(" ", "B"), make_lowercase(), make_replace("b", "C")), "aC");
}

TEST(Normalizer, GrowthWithoutBoundIsRefused) {
  // 10^6 times after six steps; one step alone of 10^6 bytes for each.
  const auto tenfold = [] { return make_replace("a", "aaaaaaaaaa"); };
  EXPECT_THROW(normalized("a", tenfold(), tenfold(), tenfold(), tenfold(), tenfold(), tenfold()), Error);
  EXPECT_THROW(normalized(std::string(100, 'a'), make_replace("a", std::string(1000000, 'b'))), Error);
  EXPECT_EQ(normalized(std::string(100, 'a'), tenfold()).size(), 1000U);
}

}  // namespace
}  // namespace kvs
