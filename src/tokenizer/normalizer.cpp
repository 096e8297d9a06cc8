// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "tokenizer/new_characters.h"
#include "tokenizer/text_edges.h"

namespace kvs::inline tokenizer {
namespace {

bool all_below(std::string_view text, unsigned char limit) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= limit) return false;
  }
  return true;
}

/// The largest growth of a known normaliser is NFKD's 11 bytes for one.
void check_growth(std::size_t before, std::size_t after) {
  constexpr std::size_t kMaxGrowth = 64, kFree = 4096;
  if (after > kMaxGrowth * before + kFree) {
    throw Error(ErrorCode::kData, "normalisation",
                "found more than " + std::to_string(after) + " bytes made of " + std::to_string(before));
  }
}

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}

  /// Decides by lead bytes: NFC changes nothing below U+0300, NFD nothing below U+00C0, no form changes ASCII.
  bool changes(std::string_view text) const override {
    const unsigned char limit = form_ == UnicodeForm::kNfc ? 0xCC : (form_ == UnicodeForm::kNfd ? 0xC3 : 0x80);
    return !all_below(text, limit);
  }

  std::string apply(std::string_view text) const override {
    std::string out;
    while (!text.empty()) {
      const std::size_t stretch = length_before_inert(text);
      if (stretch > 0) out += normal_form(text.substr(0, stretch));
      text.remove_prefix(stretch);
      const std::size_t inert = utf8_length(text);
      out += text.substr(0, inert);
      text.remove_prefix(inert);
    }
    return out;
  }

 private:
  std::string normal_form(std::string_view text) const {
    utf8proc_uint8_t* normalized = nullptr;
    const utf8proc_ssize_t length =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &normalized, static_cast<utf8proc_option_t>(options()));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(normalized, &std::free);
    if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
    if (length < 0) throw Error(ErrorCode::kInternal, "Unicode normalisation", utf8proc_errmsg(length));
    return {reinterpret_cast<const char*>(normalized), static_cast<std::size_t>(length)};
  }

  int options() const {
    const bool composes = form_ == UnicodeForm::kNfc || form_ == UnicodeForm::kNfkc;
    const bool is_compatible = form_ == UnicodeForm::kNfkc || form_ == UnicodeForm::kNfkd;
    return UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (is_compatible ? UTF8PROC_COMPAT : 0);
  }

  UnicodeForm form_;
};

class Lowercase final : public Normalizer {
 public:
  bool changes(std::string_view text) const override {
    for (const char c : text) {
      if (static_cast<unsigned char>(c) >= 0x80 || (c >= 'A' && c <= 'Z')) return true;
    }
    return false;
  }

  std::string apply(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
      utf8proc_int32_t code = 0;
      const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
      if (length <= 0) throw Error(ErrorCode::kInternal, "lower case", "found invalid UTF-8");
      text.remove_prefix(static_cast<std::size_t>(length));
      append_lower(code, out);
    }
    return out;
  }

 private:
  static void append_lower(utf8proc_int32_t code, std::string& out) {
    constexpr utf8proc_int32_t kDottedCapitalI = 0x130;  // the only character whose lower case has two characters
    if (code == kDottedCapitalI) {
      out += "i\u0307";
      return;
    }
    utf8proc_uint8_t bytes[4];
    const char32_t added = new_lower_case(static_cast<char32_t>(code));
    const utf8proc_int32_t lower = added == 0 ? utf8proc_tolower(code) : static_cast<utf8proc_int32_t>(added);
    const utf8proc_ssize_t length = utf8proc_encode_char(lower, bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
  }
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  bool changes(std::string_view text) const override { return !text.empty() && !prefix_.empty(); }
  std::string apply(std::string_view text) const override {
    return text.empty() ? std::string() : prefix_ + std::string(text);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(std::string text, std::string content) : text_(std::move(text)), content_(std::move(content)) {}
  bool changes(std::string_view text) const override { return text.find(text_) != std::string_view::npos; }
  std::string apply(std::string_view text) const override {
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = 0; (at = text.find(text_, done)) != std::string_view::npos; done = at + text_.size()) {
      out.append(text.substr(done, at - done)).append(content_);
      check_growth(text.size(), out.size());
    }
    return out.append(text.substr(done));
  }

 private:
  std::string text_, content_;
};

class RegexReplace final : public Normalizer {
 public:
  RegexReplace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  bool changes(std::string_view text) const override {
    std::string storage;
    return pattern_.search(pattern_.searchable(text, storage), 0).has_value();
  }
  std::string apply(std::string_view text) const override {
    std::string out, storage;
    const std::string_view searched = pattern_.searchable(text, storage);
    std::size_t done = 0;
    while (done < text.size()) {
      const auto match = pattern_.search(searched, done);
      if (!match || match->end == match->begin) break;
      out.append(text.substr(done, match->begin - done)).append(content_);
      check_growth(text.size(), out.size());
      done = match->end;
    }
    return out.append(text.substr(done));
  }

 private:
  Regex pattern_;
  std::string content_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  bool changes(std::string_view text) const override { return stripped(text).size() != text.size(); }
  std::string apply(std::string_view text) const override { return std::string(stripped(text)); }

 private:
  std::string_view stripped(std::string_view text) const {
    if (left_) text.remove_prefix(space_at_start(text));
    return right_ ? text.substr(0, space_at_end(text)) : text;
  }

  bool left_, right_;
};

}  // namespace

std::unique_ptr<const Normalizer> make_unicode_normalizer(UnicodeForm form) {
  return std::make_unique<UnicodeNormalizer>(form);
}
std::unique_ptr<const Normalizer> make_lowercase() { return std::make_unique<Lowercase>(); }
std::unique_ptr<const Normalizer> make_prepend(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}
std::unique_ptr<const Normalizer> make_replace(std::string text, std::string content) {
  return std::make_unique<Replace>(std::move(text), std::move(content));
}
std::unique_ptr<const Normalizer> make_regex_replace(Regex pattern, std::string content) {
  return std::make_unique<RegexReplace>(std::move(pattern), std::move(content));
}
std::unique_ptr<const Normalizer> make_strip(bool left, bool right) { return std::make_unique<Strip>(left, right); }

std::string_view normalize(const Normalizers& steps, std::string_view text, std::string& storage) {
  const std::size_t before = text.size();
  for (const auto& step : steps) {
    if (!step->changes(text)) continue;
    storage = step->apply(text);
    text = storage;
    check_growth(before, text.size());
  }
  return text;
}

}  // namespace kvs::inline tokenizer
