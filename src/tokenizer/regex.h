#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/new_characters.h"

namespace kvs {

/// A compiled pattern over UTF-8 text with Unicode properties, by PCRE2 (JIT where the processor allows).
/// `\s` and `\S` mean Unicode's White_Space exactly; PCRE2's own also holds U+180E. Thread-safe after construction.
class Regex {
 public:
  struct Match {
    std::size_t begin, end;  // byte offsets
  };

  /// @param literal  `pattern` is plain text, not a pattern
  /// @param version  whose general categories \p means; a pattern with \p names no character beyond ASCII itself
  explicit Regex(std::string_view pattern, bool literal = false, Unicode version = Unicode::k16);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// The first match at or after `from` in `text`, which must be valid UTF-8. `^` and `$` are the ends of `text`.
  /// @throws Error kData if the search exceeds its limit of steps.
  std::optional<Match> search(std::string_view text, std::size_t from) const;
  /// `text` as search() must see it where it may hold characters that PCRE2's tables lack (with_stand_ins).
  /// Cost O(n), so once for all searches of a text.
  std::string_view searchable(std::string_view text, std::string& storage) const;

 private:
  struct Code;
  std::optional<Unicode> version_;  // of a pattern that asks for general categories
  std::unique_ptr<Code> code_;
};

}  // namespace kvs
