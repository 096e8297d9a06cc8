// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "io/output_tensor.h"

namespace kvs::inline io {

/// Metadata of a GGUF file to write, in insertion order.
/// Every member throws Error kInternal for a key that is empty, too long or already used.
class GgufMetadataWriter {
 public:
  void add(std::string_view key, std::uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, std::span<const std::string_view> values);
  void add(std::string_view key, std::span<const std::int32_t> values);
  void add(std::string_view key, std::span<const float> values);
  /// Adds a value encoded as in another file (GgufFile::encoded()).
  void add_encoded(std::string_view key, std::span<const std::byte> value);

  std::uint64_t count() const noexcept { return keys_.size(); }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void add_key(std::string_view key);
  std::set<std::string, std::less<>> keys_;
  std::string bytes_;
};

/// Writes a GGUF file (version 3, alignment 32) into an existing empty file: metadata and tensor entries first, then
/// the values of each tensor in order. Format: the ggml project's docs/gguf.md.
/// @throws Error kData for a value that the type cannot represent; kInternal for a name that is used twice or has 64
///         bytes or more, for a shape with 0 or more than 4 axes, or for an empty axis.
void write_gguf(const std::filesystem::path& file, const GgufMetadataWriter& metadata,
                std::span<const OutputTensor> tensors, std::function<void(std::uint64_t)> progress = {});

}  // namespace kvs::inline io
