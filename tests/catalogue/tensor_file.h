// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {

inline std::string little_endian(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

/// A safetensors file in parts that a test may change one by one.
struct TensorFile {
  explicit TensorFile(const std::filesystem::path& path) {
    const std::string bytes = slurp(path);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    header = parse_json(std::string_view(bytes).substr(sizeof length, length), path.string());
    data = bytes.substr(sizeof length + length);
  }
  /// The file with another text as its header.
  std::string with(std::string_view text) const { return little_endian(text.size()) + std::string(text) + data; }
  std::string bytes() const { return with(header.dump()); }

  Json header;
  std::string data;
};

}  // namespace kvs::testing
