// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/json.h"
#include "tokenizer/regex.h"

namespace kvs::inline model {

/// One pattern of modules' names in a quantization_config.
class ModulePattern {
 public:
  enum class Kind { kName, kRegex, kWildcards };

  /// A name, or "re:" and a regular expression that matches from a name's beginning on (Python's re.match).
  /// @throws Error kInput if the expression is malformed.
  static ModulePattern of_compressed_tensors(const JsonCursor& pattern);
  /// A name with `*`, `?` and `[...]` (Python's fnmatch).
  static ModulePattern with_wildcards(const JsonCursor& pattern);

  Kind kind() const noexcept { return kind_; }
  const std::string& text() const noexcept { return text_; }
  /// @throws Error kInput if a regular expression takes too many steps.
  bool matches(const std::string& module) const;

 private:
  ModulePattern(const JsonCursor& pattern, Kind kind, std::string text);

  Kind kind_;
  std::string place_, text_;
  std::shared_ptr<const Regex> regex_;  // shared, so that patterns can be copied
};

/// Reads a list of patterns; a missing key or null is an empty list.
std::vector<ModulePattern> read_patterns(const JsonCursor& object, std::string_view key,
                                         ModulePattern (*read)(const JsonCursor&));

/// Returns the first pattern that matches, or nullptr.
const ModulePattern* find_match(const std::vector<ModulePattern>& patterns, const std::string& module);

}  // namespace kvs::inline model
