// SPDX-License-Identifier: Apache-2.0
#include "io/python_json.h"

#include <cmath>

namespace kvs::inline io {
namespace {

constexpr std::size_t kIndent = 2;

std::string python_word(double number) {
  if (std::isnan(number)) return "NaN";
  return number > 0 ? "Infinity" : "-Infinity";
}

/// Recurses as deep as the limit of parse_python_json() allows.
void write_value(const Json& value, std::size_t depth, std::string& text) {
  const auto* real = value.get_ptr<const double*>();
  if (real != nullptr && !std::isfinite(*real)) {
    text += python_word(*real);
  } else if (!value.is_structured() || value.empty()) {
    text += value.dump();
  } else {
    const auto new_line = [&](std::size_t level) { text += '\n' + std::string(level * kIndent, ' '); };
    text += value.is_object() ? '{' : '[';
    for (auto member = value.begin(); member != value.end(); ++member) {
      if (member != value.begin()) text += ',';
      new_line(depth + 1);
      if (value.is_object()) text += Json(member.key()).dump() + ": ";
      write_value(*member, depth + 1, text);
    }
    new_line(depth);
    text += value.is_object() ? '}' : ']';
  }
}

}  // namespace

std::string dump_python_json(const Json& value) {
  std::string text;
  write_value(value, 0, text);
  return text;
}

}  // namespace kvs::inline io
