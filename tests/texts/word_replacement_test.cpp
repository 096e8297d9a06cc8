// SPDX-License-Identifier: Apache-2.0
#include "texts/word_replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

std::vector<std::string> doubled(std::string_view word) { return {std::string(word) + std::string(word)}; }

TEST(WordReplacement, LeavesNamesStopWordsAndPartsOfWordsAlone) {
  const std::string text = "start Light of rays isn't x9 café red_hot glass the end";
  const auto all = choose_replacements(text, 1, 0, doubled);
  EXPECT_EQ(replace_words(text, all), "start Light of raysrays isn't x9 café red_hot glassglass the end");
}

TEST(WordReplacement, ReplacesARoundedShareOfTheWordsAndAtLeastOne) {
  std::string text = ".";
  for (int n = 0; n < 149; ++n) text += " ray";
  text += " .";
  EXPECT_EQ(choose_replacements(text, 0.01, 0, doubled).size(), 1U);  // round(1.49)
  EXPECT_EQ(choose_replacements(text, 0.02, 0, doubled).size(), 3U);  // round(2.98)
  EXPECT_EQ(choose_replacements(text, 0.0001, 0, doubled).size(), 1U);
  EXPECT_EQ(choose_replacements(text, 1, 0, doubled).size(), 149U);
}

TEST(WordReplacement, IsTheSameForASeedAndAnotherForAnother) {
  std::string text = ".";
  for (int n = 0; n < 200; ++n) text += " ray" + std::string(1, static_cast<char>('a' + n % 26));
  text += " .";
  const auto replaced = [&](std::uint64_t seed) {
    return replace_words(text, choose_replacements(text, 0.1, seed, doubled));
  };
  EXPECT_EQ(replaced(3), replaced(3));
  EXPECT_NE(replaced(3), replaced(4));
}

TEST(WordReplacement, ChangesNothingWithoutSynonyms) {
  const auto none = [](std::string_view) { return std::vector<std::string>(); };
  EXPECT_TRUE(choose_replacements("some rays of light", 1, 0, none).empty());
  EXPECT_TRUE(choose_replacements("", 1, 0, doubled).empty());
}

}  // namespace
}  // namespace kvs
