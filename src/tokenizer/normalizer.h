#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace kvs {

/// One step of normalisation: a text to a text, both valid UTF-8. Thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// False only if `text` comes out as it is; cheaper than apply.
  virtual bool changes(std::string_view text) const = 0;
  virtual std::string apply(std::string_view text) const = 0;
};
using Normalizers = std::vector<std::unique_ptr<const Normalizer>>;

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

/// A Unicode normalisation form (UAX 15) as `tokenizers` has it: by utf8proc, without what Unicode 10 and later added.
std::unique_ptr<const Normalizer> make_unicode_normalizer(UnicodeForm form);
/// Each character's full lower case mapping, without regard to its neighbours (Rust's char::to_lowercase).
std::unique_ptr<const Normalizer> make_lowercase();
/// Puts `prefix` before a text that is not empty.
std::unique_ptr<const Normalizer> make_prepend(std::string prefix);
/// `content` for each occurrence of `text`, which is not empty.
std::unique_ptr<const Normalizer> make_replace(std::string text, std::string content);
/// `content` for each match of `pattern`; `content` is plain text.
std::unique_ptr<const Normalizer> make_regex_replace(Regex pattern, std::string content);
/// Removes white space at the start, the end, or both.
std::unique_ptr<const Normalizer> make_strip(bool left, bool right);

/// `text` after all steps in order: itself, or what it became in `storage`, which may hold text itself.
/// @throws Error kData if it grows beyond all reason (64 times): a chain of Replace steps in a file can ask for any
/// size.
std::string_view normalize(const Normalizers& steps, std::string_view text, std::string& storage);

}  // namespace kvs
