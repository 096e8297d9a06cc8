// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "io/gguf.h"

namespace kvs::inline model {

/// Keys of one architecture: "block_count" is stored as "llama.block_count".
class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(std::string(architecture) + ".") {}

  const GgufFile& file() const noexcept { return file_; }
  bool has(std::string_view key) const { return file_.has(name(key)); }
  /// Reads one number for all layers, or an array with the same number for each.
  std::uint64_t unsigned_integer(std::string_view key, std::uint64_t most) const {
    if (!is_list(key)) return file_.get_unsigned(name(key), most);
    const std::vector<std::int64_t>& list = numbers(key);
    const auto [least, greatest] = std::ranges::minmax(list);
    if (least != greatest)
      fail(ErrorCode::kUnsupported, key,
           "found " + std::to_string(least) + " to " + std::to_string(greatest) +
               " by layer, supported are: layers that are all alike");
    return in_range(key, least, most);
  }
  /// Reads a number for each of the first `layers` layers: one for all, or an array.
  std::vector<std::size_t> by_layer(std::string_view key, std::size_t layers, std::uint64_t most) const {
    if (!is_list(key)) return std::vector<std::size_t>(layers, unsigned_integer(key, most));
    std::vector<std::size_t> values;
    values.reserve(layers);
    for (std::size_t layer = 0; layer < layers; ++layer) values.push_back(in_range(key, numbers(key)[layer], most));
    return values;
  }
  /// Reads a switch for each of the first `layers` layers from an array.
  std::vector<bool> switches(std::string_view key, std::size_t layers) const {
    const auto* list = is_list(key) ? std::get_if<std::vector<bool>>(&std::get<GgufArray>(value(key))) : nullptr;
    if (list == nullptr || list->size() < layers)
      fail(ErrorCode::kInput, key, "expected a list with one boolean for each layer");
    return {list->begin(), list->begin() + static_cast<std::ptrdiff_t>(layers)};
  }
  /// Reads a real number for each of the first `layers` layers from an array; it may be infinite or NaN.
  std::vector<double> reals(std::string_view key, std::size_t layers) const {
    const auto* list = is_list(key) ? std::get_if<std::vector<double>>(&std::get<GgufArray>(value(key))) : nullptr;
    if (list == nullptr || list->size() < layers)
      fail(ErrorCode::kInput, key, "expected a list with one real number for each layer");
    return {list->begin(), list->begin() + static_cast<std::ptrdiff_t>(layers)};
  }
  /// Reads a number from 1 to `most`.
  std::size_t count(std::string_view key, std::uint64_t most) const {
    const std::uint64_t value = unsigned_integer(key, most);
    if (value == 0) fail(ErrorCode::kInput, key, "found 0, expected 1 or more");
    return static_cast<std::size_t>(value);
  }
  double real(std::string_view key) const { return file_.get_real(name(key)); }
  bool boolean(std::string_view key, bool otherwise) const {
    return has(key) ? file_.get_boolean(name(key)) : otherwise;
  }
  std::string text(std::string_view key) const { return std::string(file_.get_string(name(key))); }
  /// @throws Error kInput if the file lacks the key.
  const GgufValue& value(std::string_view key) const {
    const auto found = file_.metadata().find(name(key));
    if (found == file_.metadata().end()) fail(ErrorCode::kInput, key, "missing key");
    return found->second;
  }
  bool nonzero(std::string_view key) const { return has(key) && unsigned_integer(key, UINT64_MAX) != 0; }
  double positive(std::string_view key) const {
    const double value = real(key);
    if (value >= double{std::numeric_limits<float>::min()} && value <= double{std::numeric_limits<float>::max()})
      return value;
    std::ostringstream found;
    found << value;
    fail(ErrorCode::kInput, key, "found " + found.str() + ", expected a number above 0 in the range of f32");
  }
  double positive_or(std::string_view key, double otherwise) const { return has(key) ? positive(key) : otherwise; }
  /// Refuses a key with another number, which must not be ignored. @param meaning  of `expected`
  /// @throws Error kUnsupported
  void must_equal(std::string_view key, std::size_t expected, const std::string& meaning) const {
    if (!has(key)) return;
    const std::uint64_t found = unsigned_integer(key, UINT64_MAX);
    if (found != expected)
      fail(ErrorCode::kUnsupported, key,
           "found " + std::to_string(found) + ", supported is " + meaning + ", " + std::to_string(expected));
  }
  /// @throws Error `code` naming file and key.
  [[noreturn]] void fail(ErrorCode code, std::string_view key, const std::string& problem) const {
    throw Error(code, place(name(key)), problem);
  }
  /// Returns the place of an error that concerns several keys.
  std::string place(const std::string& part) const { return file_.path().string() + ": " + part; }

 private:
  static constexpr std::string_view kLayers = "block_count";
  bool is_list(std::string_view key) const { return has(key) && std::holds_alternative<GgufArray>(value(key)); }
  /// Returns an array with a number for each block.
  const std::vector<std::int64_t>& numbers(std::string_view key) const {
    const auto* list = std::get_if<std::vector<std::int64_t>>(&std::get<GgufArray>(value(key)));
    if (list == nullptr || key == kLayers || list->size() != file_.get_unsigned(name(kLayers), UINT32_MAX))
      fail(ErrorCode::kInput, key, "found a list, expected a number, or one for each layer");
    return *list;
  }
  std::size_t in_range(std::string_view key, std::int64_t value, std::uint64_t most) const {
    if (value < 0 || static_cast<std::uint64_t>(value) > most)
      fail(ErrorCode::kInput, key,
           "found " + std::to_string(value) + ", expected a number from 0 to " + std::to_string(most));
    return static_cast<std::size_t>(value);
  }
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace kvs::inline model
