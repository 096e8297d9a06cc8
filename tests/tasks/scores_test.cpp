#include "tasks/scores.h"

#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace kvs
