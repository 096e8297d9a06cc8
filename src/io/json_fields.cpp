// SPDX-License-Identifier: Apache-2.0
#include "io/json_fields.h"

namespace kvs::json_fields {

std::size_t place_of_name(const JsonCursor& json, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, std::string_view(json.string()));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string expected = "one of";
  for (const std::string_view name : names) expected += (expected.size() > 6 ? ", " : " ") + std::string(name);
  json.fail(expected);
}

}  // namespace kvs::json_fields
