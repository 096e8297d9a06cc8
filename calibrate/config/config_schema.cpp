// SPDX-License-Identifier: Apache-2.0
#include "embedded/config_schema.h"

#include <algorithm>
#include <cmath>

#include "calibrate/config/config.h"
#include "calibrate/registry.h"

namespace kvs::inline calibrate {
namespace {

/// Returns the schema of one value.
Json value_schema(const ParameterSpec& spec) {
  switch (spec.kind) {
    case ParameterSpec::Kind::kCount:
      return {{"type", "integer"},
              {"minimum", static_cast<std::uint64_t>(spec.least)},
              {"maximum", static_cast<std::uint64_t>(spec.most)}};
    case ParameterSpec::Kind::kReal: {
      Json schema{{"type", "number"}, {"minimum", spec.least}};
      if (std::isfinite(spec.most)) schema["maximum"] = spec.most;
      return schema;
    }
    case ParameterSpec::Kind::kReals: {
      const Json one{{"type", "number"}, {"minimum", spec.least}, {"maximum", spec.most}};
      return {{"anyOf", {one, {{"type", "array"}, {"items", one}}}}};
    }
    case ParameterSpec::Kind::kWord:
      return {{"enum", spec.words}};
    case ParameterSpec::Kind::kIndices:
      return {{"$ref", "#/definitions/index_list"}};
  }
  return {};
}

/// @param shared  properties that other methods have too, as "#/definitions/full_parameters/properties/NAME"
Json parameters_schema(const Method& method, const Json& shared) {
  Json required = Json::array(), properties = Json::object();
  for (const ParameterSpec& spec : describe(method)) {
    if (spec.default_value.is_null()) required.push_back(spec.name);
    const Json one = value_schema(spec);
    Json& schema = properties[spec.name] = one;
    if (spec.per_layer) schema = {{"anyOf", {one, {{"type", "array"}, {"items", one}}}}};
    if (!spec.help.empty()) schema["description"] = spec.help;
    if (!spec.default_from.empty())
      schema["description"] = spec.help + "; default: as " + std::string(spec.default_from);
    else if (spec.name != "layers" && !spec.default_value.is_null())
      schema["default"] = spec.default_value;
    if (const auto found = shared.find(spec.name); found != shared.end() && *found == schema)
      schema = {{"$ref", "#/definitions/full_parameters/properties/" + spec.name}};
  }
  Json schema{{"type", "object"}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  schema["properties"] = std::move(properties);
  return schema;
}

/// Returns the schema with every method of the table: its name, and its parameters as declared by their reader.
Json completed(Json schema) {
  Json &names = schema.at("properties").at("method").at("enum"), &rules = schema.at("allOf");
  const Method& full = kFullMethod;  // has exactly the parameters that all methods share
  const Json shared = parameters_schema(full, Json::object()).at("properties");
  for (const Method* const method : all_methods()) {
    if (method->make == nullptr) continue;
    const std::string name(method->name), definition = name + "_parameters";
    schema.at("definitions")[definition] = parameters_schema(*method, method == &full ? Json::object() : shared);
    if (std::ranges::find(names, Json(name)) != names.end()) continue;
    names.push_back(name);
    rules.push_back({{"if", {{"properties", {{"method", {{"const", name}}}}}}},
                     {"then",
                      {{"properties",
                        {{"parameters", {{"$ref", "#/definitions/" + definition}}}, {"files", {{"maxItems", 0}}}}}}}});
  }
  return schema;
}

}  // namespace

const Json& parsed_config_schema() {
  static const Json schema = completed(parse_json(embedded::config_schema, "schema"));
  return schema;
}

const std::string& config_schema() {
  static const std::string text = dump_json(parsed_config_schema()) + '\n';
  return text;
}

}  // namespace kvs::inline calibrate
