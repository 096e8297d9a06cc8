#include "export/report/html.h"

#include "core/error.h"

namespace kvs {
namespace {

/// The one place where text becomes part of a page, in content and in double-quoted attributes.
void append_escaped(std::string& html, std::string_view words) {
  for (const char c : printable_text(words)) {
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

}  // namespace

Markup text(std::string_view words) {
  std::string html;
  append_escaped(html, words);
  return Markup(std::move(html));
}

Markup element(std::string_view name, Attributes attributes, const Markup& content) {
  std::string html = "<";
  html += name;
  for (const auto& [attribute, value] : attributes) {
    if (value.empty()) continue;
    html += ' ';
    html += attribute;
    html += "=\"";
    append_escaped(html, value);
    html += '"';
  }
  html += '>';
  if (name == "meta") return Markup(std::move(html));  // HTML gives it no end tag
  html += content.html();
  html += "</";
  html += name;
  html += '>';
  return Markup(std::move(html));
}

Markup verbatim(std::string_view name, std::string_view trusted) {
  std::string html = "<";
  html.append(name).append(">\n").append(trusted).append("</").append(name).append(">");
  return Markup(std::move(html));
}

}  // namespace kvs
