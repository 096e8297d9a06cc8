// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/settings_check.h"

#include <algorithm>
#include <string>

#include "core/nearest.h"

namespace kvs::inline calibrate {
namespace {

/// Returns what was expected if `value` is invalid for a parameter of one layer and head; empty if it is valid.
std::string expected_of(const ParameterSpec& spec, const Json& value) {
  using Kind = ParameterSpec::Kind;
  const auto inside = [&] { return value >= spec.least && value <= spec.most; };
  switch (spec.kind) {
    case Kind::kCount:
      if (value.is_number_integer() && inside()) return {};
      return "a whole number of at least " + std::to_string(static_cast<std::uint64_t>(spec.least));
    case Kind::kReal:
    case Kind::kReals:
      if (value.is_number() && inside()) return {};
      return "a number from " + Json(spec.least).dump() + " to " + Json(spec.most).dump();
    case Kind::kIndices:
      if (value == "none" || (value.is_number_integer() && value >= 0)) return {};
      return "whole numbers, or none";
    case Kind::kWord:
      break;
  }
  if (value.is_string() && std::ranges::find(spec.words, value.get<std::string>()) != spec.words.end()) return {};
  std::string words;
  for (const std::string& word : spec.words) words += (words.empty() ? "one of " : ", ") + word;
  return words + (value.is_string() ? did_you_mean(value.get<std::string>(), spec.words) : "");
}

void check_values(const ParameterSpec& spec, const Json& value, const std::string& where) {
  if (value.is_array()) {
    for (const Json& one : value) check_values(spec, one, where);
    return;
  }
  if (const std::string expected = expected_of(spec, value); !expected.empty())
    throw Error(ErrorCode::kUsage, where + ' ' + spec.name, "found " + describe_json(value) + ", expected " + expected);
}

}  // namespace

void check_settings(const Method& method, const Json& settings, const std::string& where) {
  const std::vector<ParameterSpec> specs = describe(method);
  std::vector<std::string> names;
  std::string list;
  for (const ParameterSpec& spec : specs) {
    names.push_back(spec.name);
    list += (list.empty() ? "" : ", ") + spec.name;
  }
  for (const auto& [name, value] : settings.items()) {
    const auto spec = std::ranges::find(specs, name, &ParameterSpec::name);
    if (spec == specs.end()) {
      const std::string meant = did_you_mean(name, names);
      throw Error(ErrorCode::kUsage, where + ' ' + name,
                  "found a parameter that " + std::string(method.name) + " does not have" +
                      (meant.empty() ? ", expected one of " + list : meant));
    }
    check_values(*spec, value, where);
  }
}

void check_complete(const Method& method, const Json& settings, const std::string& where,
                    std::span<const std::string_view> later) {
  for (const ParameterSpec& spec : describe(method))
    if (spec.default_value.is_null() && !settings.contains(spec.name) &&
        std::ranges::find(later, spec.name) == later.end())
      throw Error(ErrorCode::kUsage, where + ' ' + spec.name, "found nothing, expected a whole number");
}

}  // namespace kvs::inline calibrate
