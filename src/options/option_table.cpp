// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/nearest.h"
#include "core/old_names.h"
#include "core/utf8.h"
#include "options/options.h"
#include "options/table_state.h"
#include "options/words.h"

namespace kvs::inline options {
namespace {

/// Name for words that belong to no option. A command line is unlikely to contain this name.
constexpr const char* kStray = "stray word";

enum class Help { kNone, kShort, kAll };

/// Removes --help, and the word `all` after it, from the words before "--".
Help take_help(std::vector<std::string>& words) {
  Help help = Help::kNone;
  for (std::size_t n = 0; n < words.size() && words[n] != kEndOfOptions;) {
    if (!is_help(words[n])) {
      ++n;
      continue;
    }
    const bool all = n + 1 < words.size() && words[n + 1] == "all";
    help = all ? Help::kAll : std::max(help, Help::kShort);
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(n);
    words.erase(at, at + (all ? 2 : 1));
  }
  return help;
}

}  // namespace

void OptionTable::State::rename(std::string& word) const {
  const std::size_t end = std::min(word.find('='), word.size());
  if (!word.starts_with("--") || end == 2) return;
  const auto found = old_names.find(word.substr(2, end - 2));
  if (found == old_names.end()) return;
  note_old_name("--" + found->first, "--" + found->second);
  word.replace(2, end - 2, found->second);
}

void OptionTable::State::check_value(const Options& options, const std::string& name) const {
  constexpr std::size_t kMaxIndices = std::size_t{1} << 16;
  const std::string& form = options.forms_.at(name);
  const auto range = ranges.find(name);
  const auto [least, most] = range == ranges.end() ? std::pair(-HUGE_VAL, HUGE_VAL) : range->second;
  const auto whole = [](double bound) {
    constexpr double kBeyond = 9.2e18;
    if (bound > kBeyond) return std::numeric_limits<std::int64_t>::max();
    return bound < -kBeyond ? std::numeric_limits<std::int64_t>::min() : static_cast<std::int64_t>(bound);
  };
  if (wholes.contains(name) || (form.size() == 1 && form[0] >= 'A' && form[0] <= 'Z'))
    (void)options.integer(name, whole(least), whole(most));
  else if (form.find('|') != std::string::npos)
    (void)options.choice(name, split(form, '|'));
  else if (form == "SHARE")
    (void)options.share(name);
  else if (form == "SHARES")
    (void)options.shares(name);
  else if (form == "A:B")
    (void)options.window_range(name);
  else if (form == "LAYERS" && !parse_indices(options.text(name), kMaxIndices))
    refuse(name, options.text(name), "indices such as 0,14-16, or all");
  else if (form == "LIST" && range != ranges.end())
    (void)options.integers(name, static_cast<std::size_t>(least), static_cast<std::size_t>(whole(most)));
  else if (range != ranges.end())
    (void)options.real(name, least, most);
}

OptionTable::OptionTable(std::string usage, std::string summary, std::vector<std::string> examples)
    : state_(std::make_unique<State>()) {
  state_->usage = std::move(usage);
  state_->summary = std::move(summary);
  state_->examples = std::move(examples);
  group("Options");
}
OptionTable::~OptionTable() = default;
OptionTable::OptionTable(OptionTable&&) noexcept = default;

OptionTable& OptionTable::group(const std::string& title) {
  state_->groups.push_back({title, std::make_unique<po::options_description>(title, kHelpWidth)});
  return *this;
}

OptionTable& OptionTable::value(const std::string& name, const std::string& placeholder, const std::string& help,
                                const std::string& standard) {
  state_->last = name;
  if (!standard.empty()) state_->standards[name] = standard;
  const std::string text = standard.empty() ? help : help + " [" + standard + "]";
  state_->groups.back().options->add_options()(name.c_str(), po::value<std::string>()->value_name(placeholder),
                                               text.c_str());
  return *this;
}

OptionTable& OptionTable::list(const std::string& name, const std::string& placeholder, const std::string& help) {
  state_->last = name;
  state_->groups.back().options->add_options()(
      name.c_str(), po::value<std::vector<std::string>>()->composing()->multitoken()->value_name(placeholder),
      help.c_str());
  return *this;
}

OptionTable& OptionTable::flag(const std::string& name, const std::string& help) {
  state_->last = name;
  state_->groups.back().options->add_options()(name.c_str(), help.c_str());
  return *this;
}

OptionTable& OptionTable::whole(double least) {
  state_->wholes.insert(state_->last);
  return from(least);
}

OptionTable& OptionTable::from(double least, double most) {
  state_->ranges[state_->last] = {least, most};
  return *this;
}

OptionTable& OptionTable::formerly(const std::string& name) {
  state_->old_names[name] = state_->last;
  return *this;
}

OptionTable& OptionTable::required() {
  state_->required.push_back(state_->last);
  return *this;
}

OptionTable& OptionTable::check(std::function<void(const Options&)> check) {
  state_->checks.push_back(std::move(check));
  return *this;
}

OptionTable& OptionTable::describes(std::function<std::string(const std::string&)> describe) {
  state_->described = state_->last;
  state_->describe = std::move(describe);
  return *this;
}

OptionTable& OptionTable::positional(const std::string& name, const std::string& help, bool required) {
  state_->hidden.add_options()(name.c_str(), po::value<std::string>());
  state_->positional.add(name.c_str(), 1);
  state_->positional_name = name;
  state_->positional_help = help;
  state_->positional_required = required;
  return *this;
}

OptionTable& OptionTable::positionals(const std::string& name, const std::string& help) {
  state_->hidden.add_options()(name.c_str(), po::value<std::vector<std::string>>()->composing()->multitoken());
  state_->positional.add(name.c_str(), -1);
  state_->positional_name = name;
  state_->positional_help = help;
  return *this;
}

std::optional<Options> OptionTable::parse(Arguments arguments, std::ostream& out) const {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  for (const std::string& word : words)  // outputs record the command in JSON, which is UTF-8
    if (find_invalid_utf8(word) < word.size())
      throw Error(ErrorCode::kUsage, word, "found bytes that are not UTF-8, expected UTF-8 in names and values");
  const Help help = take_help(words);
  std::for_each(words.begin(), std::ranges::find(words, kEndOfOptions),
                [this](std::string& word) { state_->rename(word); });
  Options result = parse_words(words);
  for (const std::string& name : result.given_) state_->check_value(result, name);
  if (help != Help::kNone) {
    if (state_->describe && result.has(state_->described))
      out << state_->describe(result.text(state_->described));
    else if (help == Help::kAll)
      print_all_help(out);
    else
      print_short_help(out);
    return std::nullopt;
  }
  for (const auto& [name, standard] : state_->standards)
    if (!result.has(name)) result.values_[name] = {standard};
  for (const std::string& name : state_->required)
    if (!result.has(name)) miss_option(name, result.forms_.at(name));
  for (const auto& check : state_->checks) check(result);
  for (const auto& [title, group] : state_->groups)
    for (const auto& option : group->options())
      if (is_path_form(option->semantic()->name())) result.paths_.insert(option->long_name());
  if (is_path_form(state_->positional_name)) result.paths_.insert(state_->positional_name);
  if (state_->positional_required && !state_->positional_name.empty() && !result.has(state_->positional_name))
    throw Error(ErrorCode::kUsage, "missing " + state_->positional_name, "see --help");
  std::istringstream usage(state_->usage);
  std::string program, subcommand;
  usage >> program >> subcommand;
  result.command_ = program + ' ' + subcommand;
  // Omits --resume and --force: a run that resumes or replaces files records the same command.
  const auto values = std::ranges::find(words, kEndOfOptions);
  for (auto word = words.begin(); word != values; ++word)
    if (*word != "--resume" && *word != "--force") result.command_ += ' ' + shell_quoted(*word);
  result.resumed_command_ = result.command_ + " --resume";
  for (auto word = values; word != words.end(); ++word)
    for (std::string* const command : {&result.command_, &result.resumed_command_})
      *command += ' ' + shell_quoted(*word);
  return result;
}

Options OptionTable::parse_words(const std::vector<std::string>& words) const {
  po::options_description all;
  for (const auto& [title, group] : state_->groups) all.add(*group);
  all.add(state_->hidden);
  po::positional_options_description positional = state_->positional;
  if (positional.max_total_count() != std::numeric_limits<unsigned>::max()) {
    all.add_options()(kStray, po::value<std::vector<std::string>>());
    positional.add(kStray, -1);
  }
  // Boost takes the word after an option as its value, even if it is an option.
  for (std::size_t n = 0; n + 1 < words.size() && words[n] != kEndOfOptions; ++n) {
    const auto* description = words[n].starts_with("--") ? all.find_nothrow(words[n].substr(2), false) : nullptr;
    if (description != nullptr && description->semantic()->min_tokens() > 0 && words[n + 1].starts_with("--"))
      throw Error(ErrorCode::kUsage, words[n],
                  "found '" + words[n + 1] + "', expected a value; one that begins with -- is given as " + words[n] +
                      "=" + shell_quoted(words[n + 1]));
  }
  Options result;
  for (const auto& option : all.options())
    result.forms_[option->long_name()] = option->semantic()->max_tokens() == 0 ? "" : option->semantic()->name();
  try {
    namespace style = po::command_line_style;
    constexpr int kStyle = style::allow_long | style::long_allow_adjacent | style::long_allow_next;
    const auto parsed = po::command_line_parser(words).options(all).positional(positional).style(kStyle).run();
    for (const auto& option : parsed.options) {
      if (option.string_key == kStray)
        throw Error(ErrorCode::kUsage, "command line",
                    "found '" + option.value.front() + "', expected an option; see --help");
      const auto& semantic = *all.find(option.string_key, false).semantic();
      if (result.has(option.string_key) && semantic.max_tokens() <= 1)
        throw Error(ErrorCode::kUsage, "--" + option.string_key, "found twice, expected once");
      result.given_.insert(option.string_key);
      auto& values = result.values_[option.string_key];
      values.insert(values.end(), option.value.begin(), option.value.end());
    }
  } catch (const po::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto& option : all.options())
      if (option->long_name() != kStray) known.push_back("--" + option->long_name());
    throw Error(
        ErrorCode::kUsage, error.get_option_name(),
        "found an option that is not known, expected one of --help all" + did_you_mean(error.get_option_name(), known));
  } catch (const po::error& error) {
    throw Error(ErrorCode::kUsage, "command line", std::string(error.what()) + "; see --help");
  }
  return result;
}

}  // namespace kvs::inline options
