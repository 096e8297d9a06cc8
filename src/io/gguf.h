// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/tensor_archive.h"

namespace kvs::inline io {

/// A GGUF metadata array: integers of any width (u64 only up to 2^63 - 1), f32 or f64, booleans, or strings as views
/// into the mapped file. Strings hold any bytes, because the format does not promise UTF-8.
using GgufArray =
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>, std::vector<bool>>;
/// u8 to u64 are stored as uint64_t, i8 to i64 as int64_t, f32 and f64 as double.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;
using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;
/// Each value with its type, encoded as in the file, so that another file can copy it.
using GgufEncoded = std::map<std::string, std::span<const std::byte>, std::less<>>;

/// A GGUF v2 or v3 file (little-endian), whole or split into parts. It is memory-mapped and completely validated when
/// opened, except for the tensors' values. Format: the ggml project's docs/gguf.md. Further limits: 2^20 keys, 2^20
/// tensors, 2^25 array elements in total, no nested arrays, alignment at most 65536, tensors that fill the data section
/// without gaps.
class GgufFile : public TensorArchive {
 public:
  /// @param path  a file, or any part NAME-00001-of-0000N.gguf of a split file; the folder must hold the other parts
  /// @throws Error kInput with the byte offset on malformed data; kInput with the part if a part is missing, belongs to
  ///         another file or repeats a tensor; kUnsupported for other versions and big-endian files.
  static std::unique_ptr<GgufFile> open(const std::filesystem::path& path);

  /// Returns the file that holds the metadata, which is the first part of a split file.
  virtual const std::filesystem::path& path() const noexcept = 0;
  virtual const GgufMetadata& metadata() const noexcept = 0;
  virtual const GgufEncoded& encoded() const noexcept = 0;

  /// Typed getters. @throws Error kInput naming file and key if the key is absent or has another type, if get_unsigned
  /// finds a value that is negative or above `most`, or if get_real finds a value that is not finite.
  std::uint64_t get_unsigned(std::string_view key, std::uint64_t most) const;
  double get_real(std::string_view key) const;
  bool get_boolean(std::string_view key) const;
  std::string_view get_string(std::string_view key) const;
  const GgufArray& get_array(std::string_view key) const;
  bool has(std::string_view key) const noexcept;

 private:
  template <class T>
  const T& get(std::string_view key, std::string_view expected) const;
};

}  // namespace kvs::inline io
