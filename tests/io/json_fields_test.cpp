// SPDX-License-Identifier: Apache-2.0
#include "io/json_fields.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace kvs {

enum class Shade { kLight, kDark };
constexpr std::array<std::string_view, 2> json_names(Shade) { return {"light", "dark"}; }

namespace {

struct Leaf {
  std::size_t veins = 0;
  std::optional<double> area = {};
  static void fields(auto& leaf, auto&& field) {
    field("veins", leaf.veins, "nerves");
    field("area", leaf.area);
  }
  static void check(const Leaf& leaf, const JsonCursor& json) {
    if (leaf.veins > 9) json.at("veins").fail("at most 9");
  }
};

struct Fruit {
  std::string colour;
  int seeds = 0;
  static void fields(auto& fruit, auto&& field) {
    field("colour", fruit.colour);
    field("seeds", fruit.seeds);
  }
};

struct Tree {
  std::string name;
  Shade shade = Shade::kLight;
  Leaf first;
  std::vector<Leaf> leaves;
  std::optional<std::pair<double, double>> span;
  std::map<std::string, bool> marks;
  std::optional<int> age;
  std::optional<std::optional<int>> height;
  std::optional<Fruit> fruit;
  static void fields(auto& tree, auto&& field) {
    field("name", tree.name);
    field("shade", tree.shade);
    field.inlined(tree.first);
    field("leaves", tree.leaves);
    field("span", tree.span);
    field("marks", tree.marks);
    field.absent_or("age", tree.age);
    field.absent_or("height", tree.height);
    field.inlined("colour", tree.fruit);
  }
};

std::string message_of(std::string_view text) {
  const Json json = parse_json(text, "tree.json");
  try {
    (void)from_json<Tree>({json, "tree.json"});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    return error.what();
  }
  return "read";
}

constexpr std::string_view kText =
    R"({"name":"elm","shade":"dark","veins":3,"area":null,"leaves":[{"veins":1,"area":0.5}],"span":[1.0,2.5],)"
    R"("marks":{"old":true}})";

TEST(JsonFields, WhatIsReadIsWrittenAgain) {
  const Json json = parse_json(kText, "tree.json");
  const Tree tree = from_json<Tree>({json, "tree.json"});
  EXPECT_EQ(tree.shade, Shade::kDark);
  EXPECT_EQ(tree.first.veins, 3U);
  EXPECT_FALSE(tree.first.area);
  ASSERT_EQ(tree.leaves.size(), 1U);
  EXPECT_EQ(tree.leaves[0].area, 0.5);
  EXPECT_EQ(tree.span, std::pair(1.0, 2.5));
  EXPECT_FALSE(tree.age);
  EXPECT_FALSE(tree.fruit);
  EXPECT_EQ(dump_json(to_json(tree), -1), kText);
}

TEST(JsonFields, APartThatMayBeMissingIsWhole) {
  std::string text(kText);
  text.replace(text.size() - 1, 1, R"(,"colour":"red","seeds":5})");
  const Json json = parse_json(text, "tree.json");
  const Tree tree = from_json<Tree>({json, "tree.json"});
  ASSERT_TRUE(tree.fruit);
  EXPECT_EQ(tree.fruit->seeds, 5);
  EXPECT_EQ(dump_json(to_json(tree), -1), text);
  EXPECT_NE(message_of(text.replace(text.find("seeds"), 5, "grain")).find("tree.json: /seeds: "), std::string::npos);
}

TEST(JsonFields, NullIsKeptApartFromAbsence) {
  for (const std::string height : {"", R"(,"height":null)", R"(,"height":3)"}) {
    const std::string text = std::string(kText.substr(0, kText.size() - 1)) + height + "}";
    const Json json = parse_json(text, "tree.json");
    EXPECT_EQ(dump_json(to_json(from_json<Tree>({json, "tree.json"})), -1), text);
  }
}

TEST(JsonFields, AMemberIsFoundUnderItsOldName) {
  const Json json = parse_json(R"({"nerves":2})", "leaf.json");
  EXPECT_EQ(from_json<Leaf>({json, "leaf.json"}).veins, 2U);
}

TEST(JsonFields, TheFirstFaultIsNamed) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(kText);
    return message_of(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(with("\"dark\"", "\"blue\""), "tree.json: /shade: found \"blue\", expected one of light, dark");
  EXPECT_EQ(with("[1.0,2.5]", "[1.0]"), "tree.json: /span: found an array of 1 elements, expected a pair");
  EXPECT_EQ(with("\"veins\":1", "\"veins\":10"), "tree.json: /leaves/0/veins: found 10, expected at most 9");
  EXPECT_NE(with("\"veins\":3", "\"veins\":-3").find("tree.json: /veins: found -3, expected "), std::string::npos);
  EXPECT_NE(with("\"name\"", "\"game\"").find("tree.json: /name: "), std::string::npos);
  EXPECT_NE(with("true", "1").find("tree.json: /marks/old: found 1, expected "), std::string::npos);
}

}  // namespace
}  // namespace kvs
