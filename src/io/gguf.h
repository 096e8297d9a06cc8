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

namespace kvs {

/// A GGUF metadata array of numbers keeps its element type; of strings, views into the mapped file.
using GgufArray = std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>, std::vector<bool>>;
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

/// A GGUF v2 or v3 file (little-endian), memory-mapped and validated whole when opened.
/// Format: the ggml project's docs/gguf.md.
class GgufFile : public TensorArchive {
 public:
  /// @throws Error kInput with the byte offset on anything malformed; kUnsupported for other versions, big-endian files,
  ///         and parts of a split file.
  static std::unique_ptr<GgufFile> open(const std::filesystem::path& path);

  virtual const std::filesystem::path& path() const noexcept = 0;
  virtual const std::map<std::string, GgufValue, std::less<>>& metadata() const noexcept = 0;

  /// Typed getters. @throws Error kInput naming file and key if absent or of another type (u64 also: negative or above `most`).
  std::uint64_t get_unsigned(std::string_view key, std::uint64_t most) const;
  double get_real(std::string_view key) const;
  bool get_boolean(std::string_view key) const;
  std::string_view get_string(std::string_view key) const;
  const GgufArray& get_array(std::string_view key) const;
  bool has(std::string_view key) const noexcept;
};

}  // namespace kvs
