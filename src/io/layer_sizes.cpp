// SPDX-License-Identifier: Apache-2.0
#include "io/layer_sizes.h"

#include <algorithm>

namespace kvs::inline io {

std::size_t LayerSizes::most() const noexcept { return *std::ranges::max_element(values_); }

std::string LayerSizes::text() const {
  if (!listed_) return std::to_string(values_.front());
  std::string text;
  for (auto value = values_.begin(); value != values_.end(); ++value)
    if (*value != 0 && std::find(values_.begin(), value, *value) == value)
      text += (text.empty() ? "" : " or ") + std::to_string(*value);
  return text;
}

LayerSizes LayerSizes::from_json(const JsonCursor& json, std::uint64_t most) {
  if (!json.value().is_array()) return json.unsigned_integer(most);
  if (json.array_size() == 0) json.fail("a number, or a list with one for each layer");
  std::vector<std::size_t> values;
  for (std::size_t layer = 0; layer < json.array_size(); ++layer)
    values.push_back(json.at(layer).unsigned_integer(most));
  return LayerSizes(std::move(values));
}

}  // namespace kvs::inline io
