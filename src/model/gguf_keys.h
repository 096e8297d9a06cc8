#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/error.h"
#include "io/gguf.h"

namespace kvs {

/// Keys of one architecture: "block_count" is stored as "llama.block_count".
class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(std::string(architecture) + ".") {}

  bool has(std::string_view key) const { return file_.has(name(key)); }
  std::uint64_t unsigned_integer(std::string_view key, std::uint64_t most) const {
    if (has(key) && std::holds_alternative<GgufArray>(value(key)))
      fail(ErrorCode::kUnsupported, key, "found a per-layer list, supported are: one number for all layers");
    return file_.get_unsigned(name(key), most);
  }
  /// From 1 to `most`.
  std::size_t count(std::string_view key, std::uint64_t most) const {
    const std::uint64_t value = unsigned_integer(key, most);
    if (value == 0) fail(ErrorCode::kInput, key, "found 0, expected 1 or more");
    return static_cast<std::size_t>(value);
  }
  double real(std::string_view key) const { return file_.get_real(name(key)); }
  bool boolean(std::string_view key, bool otherwise) const {
    return has(key) ? file_.get_boolean(name(key)) : otherwise;
  }
  std::string text(std::string_view key) const { return std::string(file_.get_string(name(key))); }
  const GgufValue& value(std::string_view key) const { return file_.metadata().find(name(key))->second; }
  bool nonzero(std::string_view key) const { return has(key) && unsigned_integer(key, UINT64_MAX) != 0; }
  double positive(std::string_view key) const {
    const double value = real(key);
    if (!(value > 0) || !std::isfinite(value)) {
      fail(ErrorCode::kInput, key, "found " + std::to_string(value) + ", expected a number above 0");
    }
    return value;
  }
  double positive_or(std::string_view key, double otherwise) const { return has(key) ? positive(key) : otherwise; }
  /// @throws Error `code` naming file and key.
  [[noreturn]] void fail(ErrorCode code, std::string_view key, const std::string& problem) const {
    throw Error(code, file_.path().string() + ": " + name(key), problem);
  }

 private:
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace kvs
