// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace kvs::inline tokenizer {

/// One step of normalisation, from valid UTF-8 to valid UTF-8. Thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Returns false only if apply() would not change `text`; cheaper than apply().
  virtual bool changes(std::string_view text) const = 0;
  virtual std::string apply(std::string_view text) const = 0;
};
using Normalizers = std::vector<std::unique_ptr<const Normalizer>>;

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

/// Unicode normalisation form (UAX 15) as in `tokenizers`: by utf8proc, without changes of Unicode 10 and later.
std::unique_ptr<const Normalizer> make_unicode_normalizer(UnicodeForm form);
/// Maps each character to its full lower case, independent of its neighbours (Rust's char::to_lowercase).
std::unique_ptr<const Normalizer> make_lowercase();
/// Puts `prefix` before a text that is not empty.
std::unique_ptr<const Normalizer> make_prepend(std::string prefix);
/// Replaces each occurrence of `text` (not empty) by `content`.
std::unique_ptr<const Normalizer> make_replace(std::string text, std::string content);
/// Replaces each match of `pattern` by `content`, which is plain text.
std::unique_ptr<const Normalizer> make_regex_replace(Regex pattern, std::string content);
/// Removes white space at the start, the end, or both.
std::unique_ptr<const Normalizer> make_strip(bool left, bool right);

/// Applies all steps in order. @return `text` itself if nothing changed, otherwise `storage`; `text` may be in
/// `storage`
/// @throws Error kData if the text grows more than 64 times: a chain of Replace steps in a file can ask for any size.
std::string_view normalize(const Normalizers& steps, std::string_view text, std::string& storage);

}  // namespace kvs::inline tokenizer
