// SPDX-License-Identifier: Apache-2.0
#include "core/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvs {
namespace {

const std::vector<std::string> kNames{"window", "windows", "tokens-file", "text"};

TEST(Nearest, FindsADroppedASwappedAndAnExtraLetter) {
  EXPECT_EQ(nearest("widow", kNames), "window");
  EXPECT_EQ(nearest("token-file", kNames), "tokens-file");
  EXPECT_EQ(nearest("texxt", kNames), "text");
  EXPECT_EQ(nearest("Window", kNames), "window");
}

TEST(Nearest, FindsTheFirstThatBeginsWithFourLetters) {
  EXPECT_EQ(nearest("wind", kNames), "window");
  EXPECT_EQ(nearest("win", kNames), "");
}

TEST(Nearest, FindsNothingForAnotherWord) {
  EXPECT_EQ(nearest("capture", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest(std::string(1000, 'w'), kNames), "");
}

TEST(Nearest, AsksForTheWordOrSaysNothing) {
  EXPECT_EQ(did_you_mean("windws", kNames), ", did you mean windows?");
  EXPECT_EQ(did_you_mean("capture", kNames), "");
}

}  // namespace
}  // namespace kvs
