#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace kvs {

/// A tensor to write, f32.
struct NamedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // outermost axis first
  std::vector<float> values;         // row-major, the product of `shape` of them
};

/// The bytes of a safetensors file: tensors in byte order of names, the header padded with blanks to 8 bytes.
/// @param metadata  becomes `__metadata__`, left out if empty
/// @throws Error kData for a value that is not finite (tensor, flat index) or a text that is not UTF-8; kInternal for a
///         shape that does not fit the values or a name that is taken.
std::string safetensors_bytes(std::span<const NamedTensor> tensors, const std::map<std::string, std::string>& metadata);

}  // namespace kvs
