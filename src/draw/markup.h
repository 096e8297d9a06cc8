#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvs::draw {

/// A piece of HTML or SVG. Only text(), element() and shape() make one, so whatever a file says stays text.
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

/// Name and value; the value is escaped as text is, and an empty one leaves the attribute out.
using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

/// `words` as they are: markup in them is shown, not obeyed. Control characters and broken UTF-8 are shown as
/// printable_text() does, and the two characters that XML does not have as U+FFFD.
Markup text(std::string_view words);
/// <name attributes>content</name>, of HTML or SVG.
Markup element(std::string_view name, Attributes attributes, const Markup& content = {});
inline Markup element(std::string_view name, const Markup& content) { return element(name, {}, content); }
inline Markup element(std::string_view name, std::string_view words) { return element(name, {}, text(words)); }
/// Attributes that are put together piece by piece.
using AttributeList = std::vector<std::pair<std::string_view, std::string>>;
/// An element of SVG, closed in itself without content.
Markup shape(std::string_view name, const AttributeList& attributes, const Markup& content = {});
/// A style or script of the program's own.
Markup verbatim(std::string_view name, std::string_view trusted);

}  // namespace kvs::draw
