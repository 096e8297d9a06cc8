// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/new_characters.h"

namespace kvs::inline tokenizer {

/// A compiled pattern over UTF-8 text with Unicode properties, by PCRE2 (JIT where the processor allows). `\s` and `\S`
/// mean exactly Unicode's White_Space; PCRE2's own classes also hold U+180E. Thread-safe after construction.
class Regex {
 public:
  struct Match {
    std::size_t begin, end;  // byte offsets
  };

  /// @param literal  `pattern` is plain text, not a pattern
  /// @param version  Unicode version of the general categories in \p; a pattern with \p has no literal non-ASCII text
  explicit Regex(std::string_view pattern, bool literal = false, Unicode version = Unicode::k16);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// Returns the first match at or after `from` in valid UTF-8 `text`. `^` and `$` match at the ends of `text`.
  /// @param steps  most steps of the search; 0: enough for the known patterns on any text
  /// @throws Error kData if the search exceeds its step limit.
  std::optional<Match> search(std::string_view text, std::size_t from, std::uint32_t steps = 0) const;
  /// Returns `text` in the form that search() needs if `text` may hold characters that PCRE2's tables lack
  /// (with_stand_ins()).
  /// Cost O(n), so call it once for all searches of a text.
  std::string_view searchable(std::string_view text, std::string& storage) const;

 private:
  struct Code;
  std::optional<Unicode> version_;  // set if the pattern has general categories
  std::unique_ptr<Code> code_;
};

}  // namespace kvs::inline tokenizer
