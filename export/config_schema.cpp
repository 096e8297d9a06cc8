#include "embedded/config_schema.h"

#include <algorithm>
#include <cmath>

#include "export/config.h"
#include "policy/methods.h"

namespace kvs {
namespace {

/// What one value may be.
Json value_schema(const ParameterSpec& spec) {
  switch (spec.kind) {
    case ParameterSpec::Kind::kCount:
      return {{"type", "integer"}, {"minimum", static_cast<std::uint64_t>(spec.least)}};
    case ParameterSpec::Kind::kReal: {
      Json schema{{"type", "number"}, {"minimum", spec.least}};
      if (std::isfinite(spec.most)) schema["maximum"] = spec.most;
      return schema;
    }
    case ParameterSpec::Kind::kWord:
      return {{"enum", spec.words}};
    case ParameterSpec::Kind::kIndices:
      return {{"$ref", "#/definitions/index_list"}};
  }
  return {};
}

Json parameters_schema(const CacheMethod& method) {
  Json required = Json::array(), properties = Json::object();
  for (const ParameterSpec& spec : describe(method)) {
    if (spec.standard.is_null()) required.push_back(spec.name);
    const Json one = value_schema(spec);
    Json& schema = properties[spec.name] = one;
    if (spec.per_layer) schema = {{"anyOf", {one, {{"type", "array"}, {"items", one}}}}};
    if (spec.name != "layers" && !spec.standard.is_null()) schema["default"] = spec.standard;
  }
  Json schema{{"type", "object"}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  schema["properties"] = std::move(properties);
  return schema;
}

/// The schema with every method of the table: its name, and its parameters as their reader describes them.
Json completed(Json schema) {
  Json &names = schema.at("properties").at("method").at("enum"), &rules = schema.at("allOf");
  for (const CacheMethod* const method : cache_methods()) {
    const std::string name(method->name), definition = name + "_parameters";
    schema.at("definitions")[definition] = parameters_schema(*method);
    if (std::ranges::find(names, Json(name)) != names.end()) continue;
    names.push_back(name);
    rules.push_back({{"if", {{"properties", {{"method", {{"const", name}}}}}}},
                     {"then", {{"properties", {{"parameters", {{"$ref", "#/definitions/" + definition}}}}}}}});
  }
  return schema;
}

}  // namespace

const std::string& config_schema() {
  static const std::string text = dump_json(completed(parse_json(embedded::config_schema, "schema"))) + '\n';
  return text;
}

}  // namespace kvs
