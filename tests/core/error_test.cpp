// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gtest/gtest.h>

#include "core/utf8.h"

namespace kvs {
namespace {

TEST(Printable, EscapesControlCharactersAndBrokenUtf8) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(printable("h\xc3\xa9"), "h\xc3\xa9");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
  EXPECT_EQ(printable("a\u202eb\u2028\u2069"), "a\\xe2\\x80\\xaeb\\xe2\\x80\\xa8\\xe2\\x81\\xa9");
  EXPECT_EQ(printable("\u2027\u202f\u2065\u206a"), "\u2027\u202f\u2065\u206a");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2Jb\x7f"),
            "a\\xc2\\x9b2Jb\\x7f");  // C1: some terminals obey it like ESC [
  EXPECT_EQ(printable(std::string(50, 'x'), 10), "xxxxxxxxxx...");
}

TEST(Printable, KeepsTheLinesOfText) {
  EXPECT_EQ(printable_text("a\n\tb\x1b[2J\n"), "a\n\tb\\x1b[2J\n");
  EXPECT_EQ(printable_text(std::string(3000, 'x')).size(), 3000U);
  EXPECT_EQ(printable_text(""), "");
}

TEST(Error, IsOneLine) {
  const Error error(ErrorCode::kInput, "model\n.gguf", "found 3, expected 4");
  EXPECT_STREQ(error.what(), "model\\x0a.gguf: found 3, expected 4");
  EXPECT_EQ(static_cast<int>(error.code()), 3);
}

TEST(Utf8, RejectsOverlongSurrogateAndOutOfRange) {
  EXPECT_EQ(utf8_length("\xf0\x9f\x98\x80"), 4U);
  EXPECT_EQ(utf8_length("\xc0\x80"), 0U);
  EXPECT_EQ(utf8_length("\xed\xa0\x80"), 0U);
  EXPECT_EQ(utf8_length("\xf4\x90\x80\x80"), 0U);
  EXPECT_EQ(utf8_length("\xe2\x82"), 0U);
  EXPECT_EQ(find_invalid_utf8("abc\xff"), 3U);
}

}  // namespace
}  // namespace kvs
