#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvs {

/// String attributes in the order in which they are written.
using TextAttributes = std::vector<std::pair<std::string, std::string>>;

/// One array of results.
struct NamedArray {
  std::string path;                  // "/power/k_pre"; its groups are made
  std::vector<std::uint64_t> shape;  // rank 1 to 4, row-major
  std::variant<std::span<const float>, std::span<const double>, std::span<const std::int32_t>> values;
  TextAttributes attributes;
};

/// The bytes of an HDF5 file of the arrays, little-endian and contiguous. It is built in memory, so it is for results,
/// not for states. The same arrays give the same bytes.
/// @throws Error kInternal if values do not fill their shape, a rank is not 1 to 4 or two paths are equal
std::string array_file_bytes(std::span<const NamedArray> arrays, const TextAttributes& attributes);

}  // namespace kvs
