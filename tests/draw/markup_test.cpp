// SPDX-License-Identifier: Apache-2.0
#include "draw/markup.h"

#include <gtest/gtest.h>

namespace kvs::draw {
namespace {

TEST(Markup, ShowsMarkupInTextAndAttributesAsItIs) {
  const std::string hostile = "<script>\"x\"</script> & 'y'";
  const std::string harmless = "&lt;script&gt;&quot;x&quot;&lt;/script&gt; &amp; &#39;y&#39;";
  EXPECT_EQ(text(hostile).html(), harmless);
  EXPECT_EQ(element("p", {{"title", hostile}}, text(hostile)).html(),
            "<p title=\"" + harmless + "\">" + harmless + "</p>");
}

TEST(Markup, ShowsControlCharactersAndBrokenUtf8) {
  EXPECT_EQ(text(std::string("a\0b\x1b"
                             "c\nd",
                             7))
                .html(),
            "a\\x00b\\x1bc\nd");
  EXPECT_EQ(text("a\u202Eb\xc2\x9b\xff").html(), "a\\xe2\\x80\\xaeb\\xc2\\x9b\\xff");
}

TEST(Markup, HasNoCharacterThatXmlDoesNot) { EXPECT_EQ(text("a\uFFFE\uFFFFb").html(), "a\uFFFD\uFFFDb"); }

TEST(Markup, ShapesWithoutContentEndInThemselves) {
  EXPECT_EQ(shape("rect", {{"x", "1"}, {"class", ""}}).html(), "<rect x=\"1\"/>");
  EXPECT_EQ(shape("text", {}, text("<")).html(), "<text>&lt;</text>");
}

TEST(Markup, LeavesEmptyAttributesOut) { EXPECT_EQ(element("td", {{"class", ""}}).html(), "<td></td>"); }

}  // namespace
}  // namespace kvs::draw
