#include "options/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>
#include <sstream>

#include "core/checked.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/old_names.h"
#include "core/utf8.h"

namespace kvs::inline options {
namespace po = boost::program_options;
namespace {

[[noreturn]] void refuse(const std::string& name, std::string_view found, const std::string& expected) {
  throw Error(ErrorCode::kUsage, "--" + name, "found '" + std::string(found) + "', expected " + expected);
}

/// Name for words that belong to no option. A command line is unlikely to contain this name.
constexpr const char* kStray = "stray word";

/// All words after it are values, even if they begin with "-".
constexpr const char* kEndOfOptions = "--";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0;;) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to - from));
    if (to == std::string_view::npos) return parts;
    from = to + 1;
  }
}

void check_choice(const std::string& name, const std::string& value, std::span<const std::string_view> allowed) {
  if (std::ranges::find(allowed, value) != allowed.end()) return;
  std::string expected;
  for (const auto candidate : allowed) expected += (expected.empty() ? "" : ", ") + std::string(candidate);
  const std::vector<std::string> known(allowed.begin(), allowed.end());
  refuse(name, value, "one of " + expected + did_you_mean(value, known));
}

/// Parses "0,14-16" or "all" to indices below `count`. Returns nullopt for any other form.
std::optional<std::set<std::size_t>> parse_indices(std::string_view text, std::size_t count) {
  std::set<std::size_t> chosen;
  if (text == "all") {
    for (std::size_t index = 0; index < count; ++index) chosen.insert(index);
    return chosen;
  }
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_integer<std::size_t>(ends.front()), last = parse_integer<std::size_t>(ends.back());
    if (ends.size() > 2 || !first || !last || *first > *last || *last >= count) return std::nullopt;
    for (std::size_t index = *first; index <= *last; ++index) chosen.insert(index);
  }
  return chosen;
}

bool is_path_form(const std::string& form) { return form == "FILE" || form == "DIR" || form == "PATH"; }

}  // namespace

void refuse_options(const Options& options, OptionNames names, std::string_view beside) {
  for (const std::string_view name : names)
    if (options.given(std::string(name)))
      throw Error(ErrorCode::kUsage, "--" + std::string(name), "cannot be combined with " + std::string(beside));
}

void require_partner(const Options& options, OptionNames names, OptionNames partners) {
  if (std::ranges::any_of(partners, [&](std::string_view name) { return options.given(std::string(name)); })) return;
  std::string needed;
  for (const std::string_view name : partners) needed += (needed.empty() ? "--" : " or --") + std::string(name);
  for (const std::string_view name : names)
    if (options.given(std::string(name))) throw Error(ErrorCode::kUsage, "--" + std::string(name), "needs " + needed);
}

void refuse_standard_input(const Options& options, const std::string& reader) {
  if (std::ranges::count(options.list("text"), "-") > 0)
    throw Error(ErrorCode::kUsage, "--text", "found -, expected files: " + reader + " reads the text a second time");
}

void miss_option(const std::string& name, const std::string& form) {
  throw Error(ErrorCode::kUsage, "missing option --" + name + (form.empty() ? "" : " " + form), "see --help");
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,=+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

bool is_help(std::string_view word) noexcept { return word == "--help" || word == "-h"; }
bool asks_for_help(Arguments words) noexcept {
  return std::any_of(words.begin(), std::ranges::find(words, kEndOfOptions), is_help);
}

bool Options::has(const std::string& name) const { return values_.contains(name); }
bool Options::flag(const std::string& name) const { return has(name); }
bool Options::takes(const std::string& name) const { return forms_.contains(name); }
bool Options::given(const std::string& name) const { return given_.contains(name); }

const std::vector<std::string>& Options::list(const std::string& name) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

const std::string& Options::text(const std::string& name) const {
  const auto& values = list(name);
  if (values.empty()) miss_option(name, forms_.contains(name) ? forms_.at(name) : "");
  if (values.front().empty()) refuse(name, "", "a value");
  return values.front();
}

std::int64_t Options::integer(const std::string& name, std::int64_t least, std::int64_t most) const {
  const auto value = parse_integer<std::int64_t>(text(name));
  if (!value || *value < least || *value > most) {
    const bool any = most == std::numeric_limits<std::int64_t>::max();
    refuse(name, text(name),
           any && least == std::numeric_limits<std::int64_t>::min()
               ? "a whole number"
               : std::string("a whole number ") + (any ? "of at least " : "from ") + std::to_string(least) +
                     (any ? "" : " to " + std::to_string(most)));
  }
  return *value;
}

double Options::real(const std::string& name, double least, double most) const {
  const auto value = parse_real(text(name));
  if (!value || *value < least || *value > most) {
    std::ostringstream range;
    range << "a number from " << least << " to " << most;
    refuse(name, text(name), range.str());
  }
  return *value;
}

double Options::share(const std::string& name) const {
  const auto value = parse_real(text(name));
  if (!value || !(*value > 0 && *value <= 1)) refuse(name, text(name), "a number above 0 and at most 1");
  return *value;
}

const std::string& Options::choice(const std::string& name, std::span<const std::string_view> allowed) const {
  check_choice(name, text(name), allowed);
  return text(name);
}

bool Options::on_off(const std::string& name) const {
  static constexpr std::string_view kSwitch[] = {"on", "off"};
  return choice(name, kSwitch) == "on";
}

std::vector<std::size_t> Options::indices(const std::string& name, std::size_t count) const {
  const std::string value = has(name) ? text(name) : "all";
  const auto chosen = parse_indices(value, count);
  if (!chosen) refuse(name, value, "indices from 0 to " + std::to_string(count - 1) + " such as 0,14-16, or all");
  return {chosen->begin(), chosen->end()};
}

std::vector<std::string> Options::words(const std::string& name) const {
  std::vector<std::string> words;
  for (const std::string_view part : split(text(name), ',')) {
    if (part.empty()) refuse(name, text(name), "words separated by single commas");
    if (std::ranges::find(words, part) != words.end())
      throw Error(ErrorCode::kUsage, "--" + name, "found " + std::string(part) + " twice, expected once");
    words.emplace_back(part);
  }
  return words;
}

std::vector<double> Options::shares(const std::string& name) const {
  std::vector<double> shares;
  for (const std::string& word : words(name)) {
    const bool percent = word.ends_with('%');
    const auto number = parse_real(std::string_view(word).substr(0, word.size() - (percent ? 1 : 0)));
    shares.push_back(number.value_or(0) / (percent ? 100 : 1));
    if (!(shares.back() > 0 && shares.back() <= 1)) refuse(name, word, "a share such as 25% or 0.25");
  }
  return shares;
}

std::vector<std::size_t> Options::integers(const std::string& name, std::size_t least, std::size_t most) const {
  std::vector<std::size_t> numbers;
  for (const std::string_view part : split(text(name), ',')) {
    const auto number = parse_integer<std::size_t>(part);
    if (!number || *number < least || *number > most)
      refuse(name, text(name),
             "whole numbers from " + std::to_string(least) + " to " + std::to_string(most) + " separated by commas");
    numbers.push_back(*number);
  }
  return numbers;
}

std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> Options::window_range(
    const std::string& name) const {
  const std::string& range = text(name);
  const auto refuse_range = [&] { refuse(name, range, "A:B such as 0:8 or -4:"); };
  const std::size_t colon = range.find(':');
  const auto bound = [&](std::string_view part) -> std::optional<std::int64_t> {
    if (part.empty()) return std::nullopt;
    const auto value = parse_integer<std::int64_t>(part);
    if (!value) refuse_range();
    return value;
  };
  if (colon == std::string::npos) refuse_range();
  const auto first = bound(std::string_view(range).substr(0, colon)),
             last = bound(std::string_view(range).substr(colon + 1));
  const bool comparable = first && last && (*first < 0) == (*last < 0);
  if ((comparable && *first >= *last) || last == 0) refuse_range();  // selects no window of any text
  return {first, last};
}

std::map<std::string, std::vector<std::string>> Options::result_options() const {
  auto kept = values_;
  for (const char* name : {"threads", "resume", "force", "quiet", "json", "no-lock", "model", "text", "tokens-file",
                           "capture", "out", "out-dir", "save-config", "config", "best-dir", "calibration-text",
                           "calibration-dir", "device", "weights-budget"})
    kept.erase(name);
  return kept;
}

struct OptionTable::State {
  std::string usage, summary;
  std::vector<std::string> examples;
  std::vector<std::unique_ptr<po::options_description>> groups;
  po::positional_options_description positional;
  po::options_description hidden;
  std::map<std::string, std::string> standards;
  std::string positional_name, positional_help;
  bool positional_required = true;
  std::string described;  // option whose values have their own help
  std::function<std::string(const std::string& value)> describe;
  std::string last;                              // option that from() and required() modify
  std::map<std::string, std::string> old_names;  // old name -> current name
  std::map<std::string, std::pair<double, double>> ranges;
  std::set<std::string> wholes;
  std::vector<std::string> required;
  std::vector<std::function<void(const Options&)>> checks;

  /// Replaces an option's old name with its current name.
  void rename(std::string& word) const;
  /// Checks the value of a given option against its placeholder and its range.
  void check_value(const Options& options, const std::string& name) const;
};

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
  state_->groups.push_back(std::make_unique<po::options_description>(title, 110));
  return *this;
}

OptionTable& OptionTable::value(const std::string& name, const std::string& placeholder, const std::string& help,
                                const std::string& standard) {
  state_->last = name;
  if (!standard.empty()) state_->standards[name] = standard;
  const std::string text = standard.empty() ? help : help + " [" + standard + "]";
  state_->groups.back()->add_options()(name.c_str(), po::value<std::string>()->value_name(placeholder), text.c_str());
  return *this;
}

OptionTable& OptionTable::list(const std::string& name, const std::string& placeholder, const std::string& help) {
  state_->last = name;
  state_->groups.back()->add_options()(
      name.c_str(), po::value<std::vector<std::string>>()->composing()->multitoken()->value_name(placeholder),
      help.c_str());
  return *this;
}

OptionTable& OptionTable::flag(const std::string& name, const std::string& help) {
  state_->last = name;
  state_->groups.back()->add_options()(name.c_str(), help.c_str());
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

std::string_view OptionTable::purpose() const {
  const std::string_view text = state_->summary;
  return text.substr(0, std::min({text.find(". "), text.find(".\n"), text.size() - 1}));
}

std::optional<Options> OptionTable::parse(Arguments arguments, std::ostream& out) const {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  for (const std::string& word : words)  // outputs record the command in JSON, which is UTF-8
    if (find_invalid_utf8(word) < word.size())
      throw Error(ErrorCode::kUsage, word, "found bytes that are not UTF-8, expected UTF-8 in names and values");
  const auto end_of_options = std::ranges::find(words, kEndOfOptions);
  const auto helpless = std::remove_if(words.begin(), end_of_options, is_help);
  const bool help = helpless != end_of_options;
  words.erase(helpless, end_of_options);
  std::for_each(words.begin(), std::ranges::find(words, kEndOfOptions),
                [this](std::string& word) { state_->rename(word); });
  Options result = parse_words(words);
  for (const std::string& name : result.given_) state_->check_value(result, name);
  if (help) {
    if (state_->describe && result.has(state_->described))
      out << state_->describe(result.text(state_->described));
    else
      print_help(out);
    return std::nullopt;
  }
  for (const auto& [name, standard] : state_->standards)
    if (!result.has(name)) result.values_[name] = {standard};
  for (const std::string& name : state_->required)
    if (!result.has(name)) miss_option(name, result.forms_.at(name));
  for (const auto& check : state_->checks) check(result);
  for (const auto& group : state_->groups)
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

void OptionTable::print_help(std::ostream& out) const {
  out << state_->summary << "\n\nUsage: " << state_->usage << "\n\n";
  if (!state_->positional_name.empty())
    out << "  " << state_->positional_name << "  " << state_->positional_help << "\n\n";
  for (const auto& group : state_->groups)
    if (!group->options().empty()) out << *group << '\n';
  out << "Examples:\n";
  for (const auto& example : state_->examples) out << "  " << example << '\n';
}

Options OptionTable::parse_words(const std::vector<std::string>& words) const {
  po::options_description all;
  for (const auto& group : state_->groups) all.add(*group);
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
        "found an option that is not known, expected one of --help" + did_you_mean(error.get_option_name(), known));
  } catch (const po::error& error) {
    throw Error(ErrorCode::kUsage, "command line", std::string(error.what()) + "; see --help");
  }
  return result;
}

}  // namespace kvs::inline options
