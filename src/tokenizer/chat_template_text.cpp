// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/chat_template_text.h"

#include <algorithm>
#include <cstddef>

namespace kvs::inline tokenizer {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Copies a template tag by tag.
class Copier {
 public:
  explicit Copier(std::string_view text) : text_(text) {}

  std::string copy() {
    while (at_ < text_.size()) {
      copy_text();
      if (at_ < text_.size()) copy_tag();
    }
    return std::move(out_);
  }

 private:
  /// Returns the beginning of the next tag, or the end.
  std::size_t next_tag() const {
    for (std::size_t at = at_; at + 1 < text_.size(); ++at)
      if (text_[at] == '{' && std::string_view("{%#").find(text_[at + 1]) != std::string_view::npos) return at;
    return text_.size();
  }

  /// Copies the text before the next tag as an output, as far as Jinja leaves it.
  void copy_text() {
    const std::size_t end = next_tag();
    std::string_view text = text_.substr(at_, end - at_);
    const bool is_last = end == text_.size();
    if (strips_) {
      text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    } else if (after_block_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    if (is_last) {
      if (text.ends_with('\n')) text.remove_suffix(1);
    } else if (end + 2 < text_.size() && text_[end + 2] == '-') {
      text = text.substr(0, text.find_last_not_of(kBlank) + 1);
    } else if (text_[end + 1] != '{') {
      const std::size_t kept = text.find_last_not_of(" \t") + 1;
      if (kept == 0 ? (after_block_ || at_ == 0 || strips_) : text[kept - 1] == '\n') text = text.substr(0, kept);
    }
    if (!text.empty()) {
      out_ += "{{~'";
      out_ += text;
      out_ += "'}}";
    }
    at_ = end;
  }

  void copy_tag() {
    const char kind = text_[at_ + 1];
    const std::string_view close = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    std::size_t at = at_ + 2;
    std::string tag;
    while (at < text_.size() && !text_.substr(at).starts_with(close)) {
      if (kind != '#' && (text_[at] == '\'' || text_[at] == '"'))
        at = copy_string(at, tag);
      else if (const char c = text_[at++]; kBlank.find(c) == std::string_view::npos)
        tag += c;
    }
    strips_ = at > 0 && at <= text_.size() && text_[at - 1] == '-';
    after_block_ = kind != '{';
    at_ = std::min(at + 2, text_.size());
    if (kind == '#') return;
    if (tag.starts_with('-')) tag.erase(0, 1);
    if (strips_ && tag.ends_with('-')) tag.pop_back();
    out_ += '{';
    out_ += kind;
    out_ += tag;
    out_ += close;
  }

  /// Copies a string. @return the place after it
  std::size_t copy_string(std::size_t at, std::string& tag) const {
    const char quote = text_[at++];
    tag += '\'';
    while (at < text_.size() && text_[at] != quote) {
      if (text_[at] == '\\' && at + 1 < text_.size()) {
        tag += text_[at + 1] == 'n' ? '\n' : text_[at + 1];
        at += 2;
      } else {
        tag += text_[at++];
      }
    }
    tag += '\'';
    return at + 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool strips_ = false, after_block_ = false;  // of the tag before
  std::string out_;
};

}  // namespace

std::string plain_template(std::string_view text) {
  std::string plain = Copier(text).copy();
  replace_all(plain, "message.role", "message['role']");
  replace_all(plain, "message.content", "message['content']");
  replace_all(plain, "'+'", "");
  return plain;
}

}  // namespace kvs::inline tokenizer
