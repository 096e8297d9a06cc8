// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf_parse.h"

/// Writes GGUF files, right or wrong, part by part.
namespace kvs::test::gguf_file {

/// Returns a little-endian value as its bytes.
template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string u32(std::uint64_t number) { return raw(static_cast<std::uint32_t>(number)); }
inline std::string u64(std::uint64_t number) { return raw(number); }
inline std::string text(std::string_view characters) { return u64(characters.size()) + std::string(characters); }

enum ValueType : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
enum TensorType : std::uint32_t { kTypeF32 = 0, kTypeQ41 = 3, kTypeQ4K = 12, kTypeQ10 = 41 };

inline std::string key(std::string_view name, std::uint32_t type, std::string_view value) {
  return text(name) + u32(type) + std::string(value);
}
inline std::string array(std::uint32_t type, std::uint64_t count, std::string_view elements = "") {
  return u32(type) + u64(count) + std::string(elements);
}

/// @param lengths  innermost axis first, as in the file
inline std::string tensor(std::string_view name, const std::vector<std::uint64_t>& lengths, std::uint32_t type,
                          std::uint64_t offset) {
  std::string entry = text(name) + u32(lengths.size());
  for (const std::uint64_t length : lengths) entry += u64(length);
  return entry + u32(type) + u64(offset);
}

struct Parts {
  std::vector<std::string> keys = {}, tensors = {};
  std::string data = "";
  std::uint32_t version = 3;
  std::size_t alignment = 32;
};

inline std::string gguf(const Parts& parts) {
  std::string bytes = "GGUF" + u32(parts.version) + u64(parts.tensors.size()) + u64(parts.keys.size());
  for (const std::string& entry : parts.keys) bytes += entry;
  for (const std::string& entry : parts.tensors) bytes += entry;
  bytes.resize((bytes.size() + parts.alignment - 1) / parts.alignment * parts.alignment, '\0');
  return bytes + parts.data;
}

inline GgufContents parse(std::string_view bytes) { return parse_gguf(std::as_bytes(std::span(bytes)), "m.gguf"); }

}  // namespace kvs::test::gguf_file
