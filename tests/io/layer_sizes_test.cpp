// SPDX-License-Identifier: Apache-2.0
#include "io/layer_sizes.h"

#include <gtest/gtest.h>

#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

LayerSizes read(const std::string& text) {
  const Json json = parse_json(text, "x");
  return LayerSizes::from_json(JsonCursor(json, "x"), 100);
}

TEST(LayerSizes, AreANumberOrAListByLayer) {
  const LayerSizes one = read("4"), list = read("[4, 0, 1, 4]");
  EXPECT_FALSE(one.is_list());
  EXPECT_EQ(one.of(7), 4U);
  EXPECT_EQ(one.json(), Json(4));
  EXPECT_TRUE(list.is_list());
  EXPECT_EQ(list.of(2), 1U);
  EXPECT_EQ(list.most(), 4U);
  EXPECT_EQ(list.json(), Json({4, 0, 1, 4}));
  EXPECT_EQ(one.text(), "4");
  EXPECT_EQ(list.text(), "4 or 1");
  EXPECT_NE(one, list);
}

TEST(LayerSizes, RefuseOtherValues) {
  for (const char* text : {"[]", "[101]", "101", "-1", "\"4\"", "[[1]]", "null", "4.0"})
    expect_error(ErrorCode::kInput, "x: ", [&] { read(text); });
}

}  // namespace
}  // namespace kvs::test
