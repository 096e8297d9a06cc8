// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"

namespace kvs::inline io {

/// A size of a model's layers: one value for all of them, or a list with a value for each layer, 0 in a layer without
/// that part. As JSON a number or a list.
class LayerSizes {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): most models have one size
  LayerSizes(std::size_t all = 0) : values_{all} {}
  /// @param by_layer  [layer], at least one
  explicit LayerSizes(std::vector<std::size_t> by_layer) : values_(std::move(by_layer)), listed_(true) {}

  /// Returns true if each layer has a value of its own.
  bool is_list() const noexcept { return listed_; }
  /// Returns the size of a layer, which must be one of the list's.
  std::size_t of(std::size_t layer) const noexcept { return values_[listed_ ? layer : 0]; }
  /// [layer], or the only value.
  const std::vector<std::size_t>& values() const noexcept { return values_; }
  /// Returns the largest value.
  std::size_t most() const noexcept;
  bool operator==(const LayerSizes&) const = default;

  /// Returns "4", or "4 or 1": each value but 0 once, in the order of layers.
  std::string text() const;
  Json json() const { return listed_ ? Json(values_) : Json(values_.front()); }
  /// @throws Error kInput for anything but a whole number or a list of at least one, each at most `most`
  static LayerSizes from_json(const JsonCursor& json, std::uint64_t most);
  static LayerSizes from_json(const JsonCursor& json) { return from_json(json, SIZE_MAX); }

 private:
  std::vector<std::size_t> values_;
  bool listed_ = false;
};

}  // namespace kvs::inline io
