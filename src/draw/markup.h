// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvs::draw {

/// A piece of HTML or SVG. Only text(), element() and shape() create one, so text of a file never becomes markup.
class Markup {
 public:
  Markup() = default;

  const std::string& html() const noexcept { return html_; }
  bool empty() const noexcept { return html_.empty(); }
  Markup& operator+=(const Markup& other) {
    html_ += other.html_;
    return *this;
  }
  friend Markup operator+(Markup a, const Markup& b) { return a += b; }

 private:
  explicit Markup(std::string html) : html_(std::move(html)) {}
  friend Markup text(std::string_view words);
  friend Markup element(std::string_view, std::initializer_list<std::pair<std::string_view, std::string>>,
                        const Markup&);
  friend Markup shape(std::string_view, const std::vector<std::pair<std::string_view, std::string>>&, const Markup&);
  friend Markup verbatim(std::string_view, std::string_view);

  std::string html_;
};

/// Names and values. Values are escaped as text() escapes; an attribute with an empty value is left out.
using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

/// Returns `words` escaped, so that markup in them is shown as text. Control characters and invalid UTF-8 are shown as
/// printable_text() shows them. The two characters that XML does not allow become U+FFFD.
Markup text(std::string_view words);
/// Returns <name attributes>content</name>, for HTML or SVG.
Markup element(std::string_view name, Attributes attributes, const Markup& content = {});
inline Markup element(std::string_view name, const Markup& content) { return element(name, {}, content); }
inline Markup element(std::string_view name, std::string_view words) { return element(name, {}, text(words)); }
/// A list of attributes that is built step by step.
using AttributeList = std::vector<std::pair<std::string_view, std::string>>;
/// Returns an SVG element. Without content the element closes itself.
Markup shape(std::string_view name, const AttributeList& attributes, const Markup& content = {});
/// Returns a style or script element. @param trusted  text of this program; not escaped
Markup verbatim(std::string_view name, std::string_view trusted);

}  // namespace kvs::draw
