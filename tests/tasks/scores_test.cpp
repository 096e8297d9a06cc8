// SPDX-License-Identifier: Apache-2.0
#include "tasks/scores.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "io/json.h"
#include "tasks/characters.h"

namespace kvs {
namespace {

TEST(Scores, AllAnswersCountOrOneOfAlternatives) {
  const std::vector<std::string> answers{"ABC", "def"};
  const Scores all = score_text("I say abc.", answers, AnswerRule::kAll);
  EXPECT_EQ(all.accuracy, 0);
  EXPECT_EQ(all.recall, 0.5);
  const Scores any = score_text("I say abc.", answers, AnswerRule::kAny);
  EXPECT_EQ(any.accuracy, 1);
  EXPECT_EQ(any.recall, 1);
  EXPECT_EQ(score_text("DEF abc", answers, AnswerRule::kAll).accuracy, 1);
}

TEST(Scores, PartialIsTheLongestPieceOfTheAnswer) {
  EXPECT_DOUBLE_EQ(longest_common_share("12345678", "9 345 123467"), 0.5);  // 1234
  EXPECT_EQ(longest_common_share("12", "34"), 0);
  EXPECT_EQ(longest_common_share("12", ""), 0);
  const std::vector<std::string> answers{"1234", "xy"};
  EXPECT_DOUBLE_EQ(score_text("23x", answers, AnswerRule::kAll).partial, 0.5);
  EXPECT_DOUBLE_EQ(score_text("123", answers, AnswerRule::kAny).partial, 0.75);
}

TEST(Scores, F1IsOfTheFirstLinesWords) {
  EXPECT_DOUBLE_EQ(word_f1("The red cat", "a cat"), 2.0 / 3);  // of red, cat and cat: precision 1, recall ½
  EXPECT_EQ(word_f1("cat cat", "Cat, cat!"), 1);
  EXPECT_EQ(word_f1("cat", "dog"), 0);
  EXPECT_EQ(score_text("\n cat\nand more of it", std::vector<std::string>{"cat"}, AnswerRule::kAny).f1, 1);
}

// Values of Python's str and SQuAD's normalize_answer (golden/make_scores_golden.py).
class ScoresGolden : public ::testing::Test {
 protected:
  static Json golden() {
    std::ifstream file(std::string(KVS_GOLDEN_DIR) + "/scores.json");
    return parse_json(std::string(std::istreambuf_iterator<char>(file), {}), "scores.json");
  }
  /// For every character that the golden program's Unicode knows: `holds` is true if and only if one of `ranges` has
  /// it.
  template <class Holds>
  void compare(const std::string& name, const Holds& holds) const {
    const auto in = [&](const Json& ranges, char32_t character) {
      for (const Json& range : ranges)
        if (character >= range[0].get<char32_t>() && character <= range[1].get<char32_t>()) return true;
      return false;
    };
    const Json& ranges = golden_.at(name);
    for (const Json& range : golden_.at("assigned"))
      for (auto character = range[0].get<char32_t>(); character <= range[1].get<char32_t>(); ++character)
        if (holds(character) != in(ranges, character)) {
          ADD_FAILURE() << name << ": U+" << std::hex << static_cast<std::uint32_t>(character);
          return;
        }
  }
  Json golden_ = golden();
};

TEST_F(ScoresGolden, LowerCaseIsPythons) {
  const Json& lower = golden_.at("lower");
  compare("assigned", [&](char32_t character) {
    const std::string key = std::to_string(static_cast<std::uint32_t>(character));
    const std::u32string expected =
        lower.contains(key) ? characters_of(lower.at(key).get<std::string>()) : std::u32string(1, character);
    return character == U'\u03A3' || lower_case(std::u32string(1, character)) == expected;
  });
}

TEST_F(ScoresGolden, SigmaIsFinalWhereItIsInPython) {
  constexpr char32_t kFinal = 0x3C2;
  compare("final_behind", [](char32_t c) { return lower_case(std::u32string{c, U'Σ'}).back() == kFinal; });
  compare("final_behind_a", [](char32_t c) { return lower_case(std::u32string{U'A', c, U'Σ'}).back() == kFinal; });
  compare("final_before", [](char32_t c) { return lower_case(std::u32string{U'A', U'Σ', c})[1] == kFinal; });
  compare("final_before_a", [](char32_t c) { return lower_case(std::u32string{U'A', U'Σ', c, U'A'})[1] == kFinal; });
}

TEST_F(ScoresGolden, SpacesAndWordsArePythons) {
  compare("space", is_space);
  compare("word", is_word_character);
}

TEST_F(ScoresGolden, AnswersAreHeldAndSharedAsThere) {
  for (const Json& pair : golden_.at("pairs")) {
    const auto answer = pair.at("answer").get<std::string>(), text = pair.at("text").get<std::string>();
    EXPECT_EQ(holds_answer(text, answer), pair.at("holds").get<bool>()) << pair.dump();
    EXPECT_DOUBLE_EQ(word_f1(answer, text), pair.at("f1").get<double>()) << pair.dump();
  }
}

TEST(Scores, PartialCountsCharacters) {
  EXPECT_DOUBLE_EQ(longest_common_share("ÉCOLE", "école"), 1);
  EXPECT_DOUBLE_EQ(longest_common_share("東京都", "京都"), 2.0 / 3);
  EXPECT_EQ(longest_common_share("東", "某"), 0);  // which have a byte in common
}

TEST(Scores, BytesThatAreNoTextAreNoAnswer) {
  EXPECT_FALSE(holds_answer("\xC3", "É"));
  EXPECT_TRUE(holds_answer("\xC3\xA9\xC3", "É"));
}

}  // namespace
}  // namespace kvs
