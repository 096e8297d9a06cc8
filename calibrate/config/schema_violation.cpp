// SPDX-License-Identifier: Apache-2.0
#include "calibrate/config/schema_violation.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/error.h"
#include "core/nearest.h"

namespace kvs::inline calibrate {
namespace {

using Nodes = std::vector<const Json*>;

/// Returns true if a condition holds. The schema's conditions have one form: each listed property equals a constant.
bool holds(const Json& condition, const Json& value) {
  if (!condition.contains("properties") || !value.is_object()) return false;
  for (const auto& [name, rule] : condition.at("properties").items())
    if (!rule.contains("const") || !value.contains(name) || value.at(name) != rule.at("const")) return false;
  return true;
}

/// Collects `node` and every rule that applies with it, through $ref, allOf and if/then.
void expand(const Json& schema, const Json& node, const Json& value, Nodes& nodes) {
  if (node.contains("$ref")) {
    const auto target = node.at("$ref").get<std::string>();
    return expand(schema, schema.at(Json::json_pointer(target.substr(1))), value, nodes);
  }
  nodes.push_back(&node);
  if (node.contains("allOf"))
    for (const Json& part : node.at("allOf")) expand(schema, part, value, nodes);
  if (node.contains("if") && holds(node.at("if"), value)) expand(schema, node.at("then"), value, nodes);
}

/// Returns the rules for one member or element of the values that `nodes` describe.
Nodes descend(const Json& schema, const Nodes& nodes, const std::string& member, const Json& value) {
  Nodes below;
  for (const Json* node : nodes) {
    if (node->contains("properties") && node->at("properties").contains(member))
      expand(schema, node->at("properties").at(member), value, below);
    if (member.empty() && node->contains("items")) expand(schema, node->at("items"), value, below);
  }
  return below;
}

void check_members(const Nodes& nodes, const JsonCursor& place, const std::string& where) {
  for (const Json* node : nodes) {
    if (node->contains("required"))
      for (const Json& name : node->at("required"))
        if (!place.value().contains(name.get<std::string>()))
          throw Error(ErrorCode::kInput, where + ": " + place.pointer() + "/" + name.get<std::string>(),
                      "found nothing, expected this member");
    if (!node->contains("additionalProperties") || node->at("additionalProperties") != false) continue;
    std::vector<std::string> known;
    for (const auto& [name, rule] : node->at("properties").items()) known.push_back(name);
    for (const auto& [name, value] : place.value().items())
      if (std::ranges::find(known, name) == known.end())
        throw Error(ErrorCode::kInput, where + ": " + place.pointer() + "/" + name,
                    "found a member that is not known here" + did_you_mean(name, known));
  }
}

/// Returns in words what one rule expects of a value; empty if the kind of rule is not supported here.
std::string expectation(const Json& node) {
  const auto text = [&](const char* key) { return node.at(key).dump(); };
  if (node.contains("const")) return text("const");
  if (node.contains("enum")) return "one of " + text("enum");
  if (node.contains("not")) return node.value("description", "another value");
  std::string words;
  if (node.contains("type")) {
    const Json& type = node.at("type");
    for (const Json& one : type.is_array() ? type : Json::array({type}))
      words += (words.empty() ? "a value of type " : " or ") + one.get<std::string>();
  }
  const auto add = [&](const char* key, const std::string& phrase) {
    if (node.contains(key)) words += (words.empty() ? "" : ", ") + phrase + ' ' + text(key);
  };
  add("minimum", "at least");
  add("exclusiveMinimum", "above");
  add("maximum", "at most");
  add("multipleOf", "a multiple of");
  add("minLength", "of length at least");
  add("minItems", "with at least this many entries:");
  add("maxItems", "with at most this many entries:");
  add("maxLength", "of length at most");
  add("pattern", "matching");
  return words;
}

}  // namespace

void fail_schema(const Json& schema, const Json& config, const std::string& where, std::span<const std::string> context,
                 const std::string& description) {
  Nodes nodes;
  expand(schema, schema, config, nodes);
  JsonCursor place(config, where);
  for (const std::string& part : context) {
    if (part == "<root>") continue;
    const bool bracketed = part.size() > 1 && part.front() == '[' && part.back() == ']';
    const std::string member = bracketed ? part.substr(1, part.size() - 2) : part;
    std::size_t index = 0;
    if (place.value().is_array()) {
      std::from_chars(member.data(), member.data() + member.size(), index);
      place = place.at(index);
      nodes = descend(schema, nodes, "", place.value());
    } else {
      place = place.at(member);
      nodes = descend(schema, nodes, member, place.value());
    }
  }
  if (place.value().is_object()) check_members(nodes, place, where);
  std::string expected;
  for (const Json* node : nodes)
    if (const std::string words = expectation(*node); !words.empty() && words != expected)
      expected += (expected.empty() ? "" : "; ") + words;
  place.fail(expected.empty() ? "what the schema asks: " + description : expected);
}

}  // namespace kvs::inline calibrate
