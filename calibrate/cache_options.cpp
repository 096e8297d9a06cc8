// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cache_options.h"

#include <iterator>
#include <sstream>
#include <utility>

#include "calibrate/common/settings_check.h"
#include "calibrate/method_help.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "core/nearest.h"

namespace kvs::inline calibrate {
namespace {

/// Returns true if --method accepts the method.
bool is_named(const Method& method) { return !method.only_with_config(); }

const Method& named(const std::string& name, const std::string& option) {
  const Method* const method = find_method(name);
  if (method == nullptr) {
    const std::vector<std::string> known = method_names(is_named);
    throw Error(ErrorCode::kUsage, option,
                "found '" + name + "', expected one of " + listed(known) + did_you_mean(name, known));
  }
  if (method->only_with_config())
    throw Error(ErrorCode::kUsage, option,
                "found " + name + ", which --config takes: kvcalibrate " + name + " makes one");
  return *method;
}

struct WordsOfCache {
  const Method& method;
  Json settings;
};

/// Parses "METHOD [NAME=VALUE …]".
WordsOfCache words_of_cache(const std::string& text, const std::string& option) {
  std::istringstream stream(text);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  const Method& method = named(words.empty() ? "" : words.front(), option);
  return {method, parse_settings(std::span(words).subspan(words.empty() ? 0 : 1), option)};
}

/// Returns the method of --method, or the default.
const Method& method_of(const Options& options, const Method* default_value) {
  return options.has("method") ? named(options.text("method"), "--method") : *default_value;
}

/// Rejects errors that can be found without a model and a config.
void check_cache_options(const Options& options, const Method* default_value) {
  if (options.has("method")) refuse_options(options, {"config"}, "--method");
  if (!options.has("method") && !options.has("config") && default_value == nullptr)
    throw Error(ErrorCode::kUsage, "missing option --method NAME or --config FILE", "see --help");
  const Json settings = parse_settings(options.list("set"), "--set");
  if (options.has("config")) return;
  const Method& method = method_of(options, default_value);
  check_settings(method, settings, "--set");
  static constexpr std::string_view kOfPrompts[] = {"prefix"};
  const bool of_prompts = options.has("task") || options.has("trace") || options.has("trace-from");
  check_complete(method, settings, "--set",
                 of_prompts ? std::span<const std::string_view>(kOfPrompts) : std::span<const std::string_view>());
}

}  // namespace

void check_cache_words(const std::string& text, const std::string& option) {
  const WordsOfCache words = words_of_cache(text, option);
  check_settings(words.method, words.settings, option);
  check_complete(words.method, words.settings, option);
}

void add_cache_options(OptionTable& table, const Method* default_value) {
  table.value("config", "FILE", "a config of any method")
      .value("method", "NAME", "a method; --help all lists them, and --help --method NAME prints the parameters of one")
      .describes([](const std::string& name) {
        const Method* const method = find_method(name);  // also accepts methods that need a config
        return method_help(method == nullptr ? named(name, "--method") : *method);
      })
      .list("set", "NAME=VALUE", "parameters of --method, or replacements of parameters in --config; may repeat")
      .check([default_value](const Options& options) { check_cache_options(options, default_value); });
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

}  // namespace kvs::inline calibrate
