// SPDX-License-Identifier: Apache-2.0
#include "options/options.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "core/checked.h"
#include "core/error.h"
#include "core/nearest.h"
#include "options/words.h"

namespace kvs::inline options {

[[noreturn]] void refuse(const std::string& name, std::string_view found, const std::string& expected) {
  throw Error(ErrorCode::kUsage, "--" + name, "found '" + std::string(found) + "', expected " + expected);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0;;) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to - from));
    if (to == std::string_view::npos) return parts;
    from = to + 1;
  }
}

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

namespace {

void check_choice(const std::string& name, const std::string& value, std::span<const std::string_view> allowed) {
  if (std::ranges::find(allowed, value) != allowed.end()) return;
  std::string expected;
  for (const auto candidate : allowed) expected += (expected.empty() ? "" : ", ") + std::string(candidate);
  const std::vector<std::string> known(allowed.begin(), allowed.end());
  refuse(name, value, "one of " + expected + did_you_mean(value, known));
}

}  // namespace

void refuse_options(const Options& options, OptionNames names, std::string_view beside) {
  for (const std::string_view name : names)
    if (options.given(std::string(name)))
      throw Error(ErrorCode::kUsage, "--" + std::string(name), "cannot be combined with " + std::string(beside));
}

void require_partner(const Options& options, OptionNames names, OptionNames partners) {
  if (std::ranges::any_of(partners, [&](std::string_view name) { return options.given(std::string(name)); })) return;
  std::string needed;
  for (const std::string_view name : partners)
    if (options.takes(std::string(name))) needed += (needed.empty() ? "--" : " or --") + std::string(name);
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

}  // namespace kvs::inline options
