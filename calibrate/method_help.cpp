#include "calibrate/method_help.h"

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "calibrate/common/settings_check.h"
#include "calibrate/registry.h"

namespace kvs::inline calibrate {
namespace {

/// " cache_size sinks=4 rope=pre|post": a parameter with its words or its default.
std::string parameter_words(const ParameterSpec& spec) {
  if (spec.kind == ParameterSpec::Kind::kIndices) return ' ' + spec.name + "=N,…";
  if (spec.default_value.is_null()) return ' ' + spec.name + "=N";
  std::string values;
  for (const std::string& word : spec.words) values += (values.empty() ? "" : "|") + word;
  return ' ' + spec.name + '=' + (values.empty() ? spec.default_value.dump() : values);
}

/// "at least 1", "from 0 to 1": what a parameter may be, beside its words.
std::string range_text(const ParameterSpec& spec) {
  using Kind = ParameterSpec::Kind;
  if (spec.kind == Kind::kCount) return "at least " + std::to_string(static_cast<std::uint64_t>(spec.least));
  if (spec.kind != Kind::kReal && spec.kind != Kind::kReals) return {};
  if (spec.most == std::numeric_limits<float>::max()) return "above 0";
  std::ostringstream text;
  text << "from " << spec.least << " to " << spec.most;
  return text.str();
}

/// A parameter and what it sets, in two columns; long words have a line of their own.
std::string parameter_line(const ParameterSpec& spec) {
  constexpr std::size_t kColumn = 28;
  const std::string words = ' ' + parameter_words(spec), range = range_text(spec);
  const auto width = static_cast<std::size_t>(std::ranges::count_if(words, [](char c) { return (c & 0xC0) != 0x80; }));
  const std::string gap = width < kColumn ? std::string(kColumn - width, ' ') : '\n' + std::string(kColumn, ' ');
  return words + gap + spec.help + (range.empty() ? "" : " (" + range + ')') + '\n';
}

}  // namespace

std::string method_help(const Method& method) {
  const std::string name(method.name);
  std::string text = name + ": " + std::string(method.title) + ", " + std::string(method.summary) + '\n';
  if (const Paper& paper = method.paper; paper.year != 0)
    text += std::string(paper.authors) + " (" + std::to_string(paper.year) + "): " + std::string(paper.title) + ", " +
            std::string(paper.link) + '\n';
  if (method.make == nullptr) return text + "Its caches run from a config: kvcalibrate " + name + " --help\n";
  text += "\nParameters (--set NAME=VALUE):\n";
  for (const ParameterSpec& spec : describe(method)) text += parameter_line(spec);
  return text;
}

std::string cache_method_lines() {
  std::string lines = "Methods and what --set takes (a list gives a value for each layer):\n", shared, configs;
  std::set<std::string> names;  // of what all methods share: the full cache has nothing else
  for (const ParameterSpec& spec : describe(kFullMethod)) {
    shared += parameter_words(spec);
    names.insert(spec.name);
  }
  for (const Method* const method : all_methods()) {
    if (method->make == nullptr) {
      configs += (configs.empty() ? "" : ", ") + std::string(method->name);
      continue;
    }
    std::string own;
    for (const ParameterSpec& spec : describe(*method))
      if (!names.contains(spec.name)) own += parameter_words(spec);
    lines += "  " + std::string(method->name) + (own.empty() ? "" : ":") + own + '\n';
  }
  return lines + "  all of them:" + shared + "\n  with --config alone: " + configs + '\n';
}

}  // namespace kvs::inline calibrate
