// SPDX-License-Identifier: Apache-2.0
#include "calibrate/method_help.h"

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "calibrate/common/settings_check.h"
#include "calibrate/registry.h"
#include "core/nearest.h"

namespace kvs::inline calibrate {
namespace {

/// Returns true if the words of a parameter are the storage types, which type_line() lists.
bool is_storage_type(const ParameterSpec& spec) { return spec.name.starts_with("type") && !spec.words.empty(); }

/// Returns the line of the storage types; empty if the method has none.
std::string type_line(const std::vector<ParameterSpec>& specs) {
  const auto type = std::ranges::find(specs, "type", &ParameterSpec::name);
  if (type == specs.end()) return {};
  return "  TYPE: " + listed(type->words) + "; by default, type_k and type_v are equal to type\n";
}

/// Returns a parameter with its words or its default: " cache_size=N", " sinks=4", " rope=pre|post".
std::string parameter_words(const ParameterSpec& spec) {
  if (is_storage_type(spec)) return ' ' + spec.name + "=TYPE";
  if (spec.kind == ParameterSpec::Kind::kIndices) return ' ' + spec.name + "=N,…";
  if (spec.default_value.is_null()) return ' ' + spec.name + "=N";
  std::string values;
  for (const std::string& word : spec.words) values += (values.empty() ? "" : "|") + word;
  return ' ' + spec.name + '=' + (values.empty() ? spec.default_value.dump() : values);
}

/// Returns the range of a number: "at least 1", "from 0 to 1".
std::string range_text(const ParameterSpec& spec) {
  using Kind = ParameterSpec::Kind;
  if (spec.kind == Kind::kCount) return "at least " + std::to_string(static_cast<std::uint64_t>(spec.least));
  if (spec.kind != Kind::kReal && spec.kind != Kind::kReals) return {};
  if (spec.most == std::numeric_limits<float>::max()) return "above 0";
  std::ostringstream text;
  text << "from " << spec.least << " to " << spec.most;
  return text.str();
}

/// Returns the line of a parameter in two columns; long words have a line of their own.
std::string parameter_line(const ParameterSpec& spec) {
  constexpr std::size_t kColumn = 28;
  const std::string words = ' ' + parameter_words(spec), range = range_text(spec);
  const auto width = static_cast<std::size_t>(std::ranges::count_if(words, [](char c) { return (c & 0xC0) != 0x80; }));
  const std::string gap = width < kColumn ? std::string(kColumn - width, ' ') : '\n' + std::string(kColumn, ' ');
  return words + gap + spec.help + (range.empty() ? "" : " (" + range + ')') + '\n';
}

/// Returns the names of the methods that have parameters but not this one: "faedkv, kivi".
std::string methods_without(const std::string& parameter) {
  std::vector<std::string> names;
  for (const Method* const method : all_methods()) {
    if (method->make == nullptr) continue;
    const std::vector<ParameterSpec> specs = describe(*method);
    if (std::ranges::find(specs, parameter, &ParameterSpec::name) == specs.end()) names.emplace_back(method->name);
  }
  return listed(names);
}

/// Returns the lines of the parameters that most methods share, with the methods that lack them.
std::string shared_lines(const std::vector<ParameterSpec>& shared) {
  std::vector<std::pair<std::string, std::string>> lines;  // methods that lack the parameters, the parameters
  for (const ParameterSpec& spec : shared) {
    const std::string lacking = methods_without(spec.name);
    if (lines.empty() || lines.back().first != lacking) lines.emplace_back(lacking, "");
    lines.back().second += parameter_words(spec);
  }
  std::string text;
  for (const auto& [lacking, words] : lines)
    text += "  all methods" + (lacking.empty() ? "" : " but " + lacking) + ':' + words + '\n';
  return text;
}

}  // namespace

std::string method_help(const Method& method) {
  const std::string name(method.name);
  std::string text = name + ": " + std::string(method.title) + ", " + std::string(method.summary) + '\n';
  if (const Paper& paper = method.paper; paper.year != 0)
    text += std::string(paper.authors) + " (" + std::to_string(paper.year) + "): " + std::string(paper.title) + ", " +
            std::string(paper.link) + '\n';
  if (method.only_with_config()) text += "The method needs a config, which kvcalibrate " + name + " writes.\n";
  if (method.make == nullptr) return text;
  text += "\nParameters (--set NAME=VALUE):\n";
  const std::vector<ParameterSpec> specs = describe(method);
  for (const ParameterSpec& spec : specs) text += parameter_line(spec);
  return text + type_line(specs);
}

std::string cache_method_lines() {
  std::string lines = "Methods and the parameters that --set takes (a list has a value for each layer):\n", configs;
  std::set<std::string> names;  // the full cache's parameters, which most methods share
  const std::vector<ParameterSpec> full = describe(kFullMethod);
  for (const ParameterSpec& spec : full) names.insert(spec.name);
  for (const Method* const method : all_methods()) {
    if (method->only_with_config()) configs += (configs.empty() ? "" : ", ") + std::string(method->name);
    if (method->make == nullptr) continue;
    std::string own;
    for (const ParameterSpec& spec : describe(*method))
      if (!names.contains(spec.name)) own += parameter_words(spec);
    lines += "  " + std::string(method->name) + (own.empty() ? "" : ":") + own + '\n';
  }
  return lines + shared_lines(full) + type_line(full) + "  only with --config: " + configs + '\n';
}

}  // namespace kvs::inline calibrate
