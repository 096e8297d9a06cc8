// SPDX-License-Identifier: Apache-2.0
#include "draw/markup.h"

#include "core/error.h"

namespace kvs::draw {
namespace {

/// Returns `words` with U+FFFE and U+FFFF replaced by U+FFFD.
std::string xml_characters(std::string words) {
  for (const std::string_view none : {"\uFFFE", "\uFFFF"})
    for (std::size_t at = words.find(none); at != std::string::npos; at = words.find(none, at))
      words.replace(at, none.size(), "\uFFFD");
  return words;
}

/// Escapes text for content and for double-quoted attributes. No other function adds text to a page.
void append_escaped(std::string& html, std::string_view words) {
  for (const char c : xml_characters(printable_text(words))) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
}

template <class Pairs>
void append_attributes(std::string& html, const Pairs& attributes) {
  for (const auto& [attribute, value] : attributes) {
    if (value.empty()) continue;
    html += ' ';
    html += attribute;
    html += "=\"";
    append_escaped(html, value);
    html += '"';
  }
}

}  // namespace

Markup text(std::string_view words) {
  std::string html;
  append_escaped(html, words);
  return Markup(std::move(html));
}

Markup element(std::string_view name, Attributes attributes, const Markup& content) {
  std::string html = "<";
  html += name;
  append_attributes(html, attributes);
  html += '>';
  if (name == "meta") return Markup(std::move(html));  // HTML has no end tag for it
  html += content.html();
  html += "</";
  html += name;
  html += '>';
  return Markup(std::move(html));
}

Markup shape(std::string_view name, const AttributeList& attributes, const Markup& content) {
  std::string html = "<";
  html += name;
  append_attributes(html, attributes);
  if (content.empty()) return Markup(html + "/>");
  html += '>';
  html += content.html();
  html += "</";
  html += name;
  return Markup(html + ">");
}

Markup verbatim(std::string_view name, std::string_view trusted) {
  std::string html = "<";
  html.append(name).append(">\n").append(trusted).append("</").append(name).append(">");
  return Markup(std::move(html));
}

}  // namespace kvs::draw
