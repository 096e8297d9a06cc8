// SPDX-License-Identifier: Apache-2.0
#include "export/report/settings.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/registry.h"
#include "export/report/markup.h"

namespace kvs::inline report {
namespace {

/// Returns the storage type of a cache's parameters: "q8_0", "k q8_0, v q4_0", or none.
std::string kv_type_of(const std::optional<Json>& parameters) {
  const auto type = [&](const char* name) -> std::string {
    if (!parameters || !parameters->contains(name)) return "";
    const Json& value = parameters->at(name);
    return value.is_string() ? value.get<std::string>() : "mixed";
  };
  const auto own = [](const std::string& name) { return name == "none" ? "" : name; };
  const auto part = [&](const std::string& name) { return name.empty() || name == "type" ? type("type") : name; };
  const std::string k = part(type("type_k")), v = part(type("type_v"));
  return k == v ? own(k) : "K " + k + ", V " + v;
}

/// Counts the words of a list: "18 × q4_0, 12 × q8_0", in order of first occurrence.
std::string tally_text(const Json& list) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const Json& word : list) {
    const auto found = std::ranges::find(counts, word.get<std::string>(), &decltype(counts)::value_type::first);
    if (found == counts.end())
      counts.emplace_back(word.get<std::string>(), 1);
    else
      ++found->second;
  }
  std::string words;
  for (const auto& [word, count] : counts)
    words += (words.empty() ? "" : ", ") + shown_count(count) + "\u00A0\u00D7\u00A0" + word;
  return words;
}

std::string value_text(const Json& value) {
  constexpr std::size_t kMaxLetters = 32;  // longer lists are given by their length
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && !value.empty() && std::ranges::all_of(value, [](const Json& one) { return one.is_string(); }))
    return tally_text(value);
  std::string said = value.dump();
  return value.is_structured() && said.size() > kMaxLetters ? "(" + counted(value.size(), "value") + ")" : said;
}

}  // namespace

std::string spoken(const std::string& label) {
  constexpr std::string_view kCalibrated = ", calibrated";
  const Method* const method = find_method(std::string_view(label).substr(0, label.find_first_of(" ,")));
  if (method == nullptr) return label;
  const std::string rest = label.substr(method->name.size());
  if (!rest.starts_with(kCalibrated)) return label;
  return std::string(method->name) + " (calibrated)" + rest.substr(kCalibrated.size());
}

std::string cache_label(const std::string& method, const std::optional<Json>& parameters) {
  const std::string type = kv_type_of(parameters);
  if (type.empty()) return method;
  return method == "full" ? type : method + " + " + type;
}

std::string settings_text(const Json& settings) {
  std::string words;
  for (const auto& [name, value] : settings.items())
    words += (words.empty() ? "" : " \u00B7 ") + name + "\u00A0" + value_text(value);
  return words;
}

}  // namespace kvs::inline report
