#include "cli/kvcalibrate/cache_choice.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "calibrate/common/settings_check.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "core/nearest.h"

namespace kvs {
namespace {

/// Whether --method takes it.
bool is_named(const Method& method) { return method.make != nullptr; }

const Method& named(const std::string& name, const std::string& option) {
  const Method* const method = find_method(name);
  if (method == nullptr) {
    const std::vector<std::string> known = method_names(is_named);
    throw Error(ErrorCode::kUsage, option,
                "found '" + name + "', expected one of " + listed(known) + did_you_mean(name, known));
  }
  if (method->make == nullptr)
    throw Error(ErrorCode::kUsage, option,
                "found " + name + ", which --config takes: kvcalibrate " + name + " makes one");
  return *method;
}

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

/// What --help says of a method: title, paper, and every parameter.
std::string method_help(const std::string& name) {
  const Method* const method = find_method(name);
  if (method == nullptr) (void)named(name, "--method");
  std::string text = name + ": " + std::string(method->title) + ", " + std::string(method->summary) + '\n';
  if (const Paper& paper = method->paper; paper.year != 0)
    text += std::string(paper.authors) + " (" + std::to_string(paper.year) + "): " + std::string(paper.title) + ", " +
            std::string(paper.link) + '\n';
  if (method->make == nullptr) return text + "Its caches run from a config: kvcalibrate " + name + " --help\n";
  text += "\nParameters (--set NAME=VALUE):\n";
  for (const ParameterSpec& spec : describe(*method)) text += parameter_line(spec);
  return text;
}

struct WordsOfCache {
  const Method& method;
  Json settings;
};

/// "METHOD [NAME=VALUE …]"
WordsOfCache words_of_cache(const std::string& text, const std::string& option) {
  std::istringstream stream(text);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  const Method& method = named(words.empty() ? "" : words.front(), option);
  return {method, parse_settings(std::span(words).subspan(words.empty() ? 0 : 1), option)};
}

/// The method of --method, or the standard.
const Method& method_of(const Options& options, const Method* default_value) {
  return options.has("method") ? named(options.text("method"), "--method") : *default_value;
}

/// Refuses what needs neither a model nor a config to be seen.
void check_cache_options(const Options& options, const Method* default_value) {
  static constexpr std::string_view kConfig[] = {"config"};
  if (options.has("method")) refuse_options(options, kConfig, "--method");
  if (!options.has("method") && !options.has("config") && default_value == nullptr)
    throw Error(ErrorCode::kUsage, "missing option --method NAME or --config FILE", "see --help");
  const Json settings = parse_settings(options.list("set"), "--set");
  if (options.has("config")) return;
  const Method& method = method_of(options, default_value);
  check_settings(method, settings, "--set");
  static constexpr std::string_view kOfQuestions[] = {"prefix"};
  check_complete(
      method, settings, "--set",
      options.has("task") ? std::span<const std::string_view>(kOfQuestions) : std::span<const std::string_view>());
}

}  // namespace

void check_cache_words(const std::string& text, const std::string& option) {
  const WordsOfCache words = words_of_cache(text, option);
  check_settings(words.method, words.settings, option);
  check_complete(words.method, words.settings, option);
}

void add_cache_options(OptionTable& table, const Method* default_value) {
  table.value("config", "FILE", "a config of any method")
      .value("method", "NAME", "a method of the list above; with --help its parameters")
      .describes(method_help)
      .list("set", "NAME=VALUE", "parameters of --method, or instead of a --config's; may repeat")
      .check([default_value](const Options& options) { check_cache_options(options, default_value); });
  add_other_weights(table);
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

CacheChoice choose_cache(const Options& options, const ModelSource& source, const Method* default_value,
                         const Json& assumed) {
  CacheChoice choice = options.has("config") ? choice_of_config(options.text("config"), source)
                                             : CacheChoice{.method = &method_of(options, default_value)};
  Json settings = parse_settings(options.list("set"), "--set");
  if (choice.loaded) choice.loaded->check_settings(settings, "--set");
  choice.parameters.push_back({std::move(settings), "--set ", ErrorCode::kUsage});
  CacheChoice tried = choice;
  if (!choice.loaded) tried.parameters.push_back({assumed, "", ErrorCode::kInternal});
  check_choice(tried, source.config());
  return choice;
}

CacheChoice cache_of_words(const std::string& text, const std::string& option, const ModelSource& source) {
  auto [method, settings] = words_of_cache(text, option);
  CacheChoice choice{.method = &method};
  choice.parameters.push_back({std::move(settings), option + " ", ErrorCode::kUsage});
  check_choice(choice, source.config());
  return choice;
}

std::function<Cache()> cache_maker(CacheChoice choice, const ModelSession& session, std::size_t tokens) {
  return cache_maker(std::move(choice), *session.backend, session.config(), tokens);
}

}  // namespace kvs
