// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvs::inline io {

/// String attributes in writing order.
using TextAttributes = std::vector<std::pair<std::string, std::string>>;

/// One array of results.
struct NamedArray {
  std::string path;                  // "/power/k_pre"; missing groups are created
  std::vector<std::uint64_t> shape;  // rank 1 to 4, row-major
  std::variant<std::span<const float>, std::span<const double>, std::span<const std::int32_t>> values;
  TextAttributes attributes;
};

/// Returns the bytes of an HDF5 file with the arrays, little-endian and contiguous. The file is built in memory, so use
/// it for results, not for states. Equal arrays give equal bytes.
/// @throws Error kInternal if values do not fill their shape, a rank is not 1 to 4 or two paths are equal
std::string array_file_bytes(std::span<const NamedArray> arrays, const TextAttributes& attributes);

}  // namespace kvs::inline io
