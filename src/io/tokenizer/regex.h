#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace kvs {

/// A compiled pattern over UTF-8 text with Unicode properties, by PCRE2 (JIT where the processor allows).
/// `\s` and `\S` mean Unicode's White_Space exactly; PCRE2's own also holds U+180E. Thread-safe after construction.
class Regex {
 public:
  struct Match {
    std::size_t begin, end;  // byte offsets
  };

  /// @param literal  `pattern` is plain text, not a pattern
  explicit Regex(std::string_view pattern, bool literal = false);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// The first match at or after `from` in `text`, which must be valid UTF-8. `^` and `$` are the ends of `text`.
  /// @throws Error kData if the search exceeds its limit of steps.
  std::optional<Match> search(std::string_view text, std::size_t from) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace kvs
