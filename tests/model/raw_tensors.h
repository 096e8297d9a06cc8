// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/json.h"

namespace kvs::test {

/// A tensor's type, shape and bytes.
struct RawTensor {
  std::string type;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};
using RawTensors = std::map<std::string, RawTensor>;

inline std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// Returns a safetensors file.
inline std::string safetensors_of(const RawTensors& tensors) {
  Json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = data.size();
    data += tensor.bytes;
    header[name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  std::string length(8, '\0');
  for (std::size_t n = 0; n < length.size(); ++n) length[n] = static_cast<char>(text.size() >> (8 * n));
  return length + text + data;
}

}  // namespace kvs::test
