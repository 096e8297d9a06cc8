// SPDX-License-Identifier: Apache-2.0
#include "io/gguf_split.h"

#include <string>

#include "core/error.h"

namespace kvs::inline io {
namespace {

constexpr std::uint64_t kMaxParts = 99999;  // five digits in a part's name

/// Returns the number stored under `key`, in any integer type.
std::optional<std::uint64_t> number_of(const GgufMetadata& metadata, std::string_view key, std::string_view where,
                                       std::uint64_t most) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  const auto* plain = std::get_if<std::uint64_t>(&found->second);
  const auto* sign = std::get_if<std::int64_t>(&found->second);
  if (plain != nullptr && *plain <= most) return *plain;
  if (sign != nullptr && *sign >= 0 && static_cast<std::uint64_t>(*sign) <= most)
    return static_cast<std::uint64_t>(*sign);
  throw Error(ErrorCode::kInput, std::string(where) + ": key \"" + std::string(key) + '"',
              "expected an integer from 0 to " + std::to_string(most));
}

/// Returns the name's ending, such as "-00002-of-00003.gguf" for the second of three parts.
std::string part_ending(std::uint64_t number, std::uint64_t count) {
  const auto five = [](std::uint64_t value) {
    const std::string digits = std::to_string(value);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "-" + five(number + 1) + "-of-" + five(count) + ".gguf";
}

}  // namespace

std::optional<GgufSplit> gguf_split_of(const GgufMetadata& metadata, std::string_view where) {
  const auto count = number_of(metadata, "split.count", where, kMaxParts);
  if (!count || *count < 2) return std::nullopt;
  const auto number = number_of(metadata, "split.no", where, kMaxParts);
  if (!number || *number >= *count)
    throw Error(ErrorCode::kInput, std::string(where) + ": key \"split.no\"",
                "found " + (number ? std::to_string(*number) : "nothing") + ", expected 0 to " +
                    std::to_string(*count - 1) + " (split.count is " + std::to_string(*count) + ")");
  const auto tensors = number_of(metadata, "split.tensors.count", where, UINT32_MAX);
  if (!tensors)
    throw Error(ErrorCode::kInput, std::string(where) + ": key \"split.tensors.count\"",
                "found nothing, expected the number of tensors in all parts");
  return GgufSplit{*number, *count, *tensors};
}

std::filesystem::path gguf_part_path(const std::filesystem::path& path, const GgufSplit& split, std::uint64_t number) {
  const std::string name = path.filename().native(), ending = part_ending(split.number, split.count);
  if (!name.ends_with(ending))
    throw Error(ErrorCode::kInput, path.native(),
                "found part " + std::to_string(split.number + 1) + " of " + std::to_string(split.count) +
                    " by its keys split.no and split.count, expected a name that ends in \"" + ending +
                    "\": the other parts are found by it");
  return path.parent_path() / (name.substr(0, name.size() - ending.size()) + part_ending(number, split.count));
}

}  // namespace kvs::inline io
