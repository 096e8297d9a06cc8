// SPDX-License-Identifier: Apache-2.0
#include "ranks/message.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "core/error.h"

namespace kvs {
namespace {

TEST(RankMessages, ArriveAsTheyWere) {
  const Message sent{Talk::kFailed, 1UL << 40, 7, 9, std::string("a\0b", 3)};
  const Message found = decode_message(encode(sent));
  EXPECT_EQ(found.talk, sent.talk);
  EXPECT_EQ(found.turn, sent.turn);
  EXPECT_EQ(found.unit, sent.unit);
  EXPECT_EQ(found.bytes, sent.bytes);
  EXPECT_EQ(found.body, sent.body);
}

TEST(RankMessages, KeepEveryBitOfSums) {
  const double values[] = {-0.0, std::numeric_limits<double>::quiet_NaN(), 0.1, 5e-324};
  const UnitResult sent{Json{{"document", 3}}, {{values, values + 4}, {}, {1.0}}};
  const UnitResult found = decode_result(encode(sent));
  EXPECT_EQ(found.record, sent.record);
  ASSERT_EQ(found.sums.size(), 3U);
  ASSERT_EQ(found.sums[0].size(), 4U);
  for (int n = 0; n < 4; ++n)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found.sums[0][n]), std::bit_cast<std::uint64_t>(values[n]));
  EXPECT_TRUE(found.sums[1].empty());
}

TEST(RankMessages, ThatAreCutShortAreErrors) {
  const std::string message = encode(Message{Talk::kUnit, 1, 2, 3});
  EXPECT_THROW(decode_message(message.substr(0, message.size() - 1)), Error);
  EXPECT_THROW(decode_message(""), Error);
}

}  // namespace
}  // namespace kvs
