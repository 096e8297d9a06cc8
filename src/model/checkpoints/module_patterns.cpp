// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/module_patterns.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace kvs::inline model {

namespace {

constexpr std::string_view kRegexMark = "re:";
constexpr std::size_t kMaxPatterns = 1 << 14, kMaxRegexes = 64, kMaxRegexBytes = 1024;
// A file's pattern may be made to take any time. The patterns of real files take a few hundred steps for a name.
constexpr std::uint32_t kMaxSteps = 20000;

/// Returns a regular expression for a pattern of Python's fnmatch.
std::string regex_of_wildcards(std::string_view text) {
  std::string regex = "(?s:";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '[' ? text.find(']', at + 2) : std::string_view::npos;
    if (text[at] == '*') {
      regex += ".*";
    } else if (text[at] == '?') {
      regex += '.';
    } else if (end != std::string_view::npos) {
      std::string inside(text.substr(at + 1, end - at - 1));
      if (inside.front() == '!') inside.front() = '^';
      regex.append("[").append(inside).append("]");
      at = end;
    } else {
      const bool plain = std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_';
      regex += plain ? std::string(1, text[at]) : std::string("\\") + text[at];
    }
  }
  return regex + ")$";
}

}  // namespace

ModulePattern::ModulePattern(const JsonCursor& pattern, Kind kind, std::string text)
    : kind_(kind), place_(pattern.place()), text_(std::move(text)) {
  if (kind == Kind::kName) return;
  if (text_.size() > kMaxRegexBytes) pattern.fail("a pattern of at most 1024 bytes");
  try {
    regex_ = std::make_shared<const Regex>(kind == Kind::kWildcards ? regex_of_wildcards(text_) : text_);
  } catch (const Error&) {
    pattern.fail("a regular expression");
  }
}

ModulePattern ModulePattern::of_compressed_tensors(const JsonCursor& pattern) {
  const std::string& text = pattern.string();
  if (!text.starts_with(kRegexMark)) return {pattern, Kind::kName, text};
  return {pattern, Kind::kRegex, text.substr(kRegexMark.size())};
}

ModulePattern ModulePattern::with_wildcards(const JsonCursor& pattern) {
  const std::string& text = pattern.string();
  return {pattern, text.find_first_of("*?[") == std::string::npos ? Kind::kName : Kind::kWildcards, text};
}

bool ModulePattern::matches(const std::string& module) const {
  if (kind_ == Kind::kName) return module == text_;
  try {
    const std::optional<Regex::Match> match = regex_->search(module, 0, kMaxSteps);
    return match && match->begin == 0;
  } catch (const Error& error) {
    throw Error(ErrorCode::kInput, place_, std::string("found a pattern that takes too many steps: ") + error.what());
  }
}

std::vector<ModulePattern> read_patterns(const JsonCursor& object, std::string_view key,
                                         ModulePattern (*read)(const JsonCursor&)) {
  std::vector<ModulePattern> patterns;
  if (!object.has(key)) return patterns;
  const JsonCursor list = object.at(key);
  const std::size_t count = list.array_size();
  if (count > kMaxPatterns) list.fail("at most 16384 patterns");
  patterns.reserve(count);
  for (std::size_t n = 0; n < count; ++n) patterns.push_back(read(list.at(n)));
  const auto regexes = std::ranges::count_if(
      patterns, [](const ModulePattern& pattern) { return pattern.kind() != ModulePattern::Kind::kName; });
  if (std::cmp_greater(regexes, kMaxRegexes)) list.fail("at most 64 patterns that are not names");
  return patterns;
}

const ModulePattern* find_match(const std::vector<ModulePattern>& patterns, const std::string& module) {
  const auto found = std::ranges::find_if(patterns, [&](const ModulePattern& each) { return each.matches(module); });
  return found == patterns.end() ? nullptr : &*found;
}

}  // namespace kvs::inline model
