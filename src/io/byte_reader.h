// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/checked.h"
#include "core/error.h"

namespace kvs::inline io {

/// A position in a file of little-endian values, from which they are read in order. Every read first checks the
/// remaining bytes; an error names the offset.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> file, std::string_view where) : file_(file), where_(where) {}

  std::uint64_t offset() const noexcept { return at_; }
  std::uint64_t left() const noexcept { return file_.size() - at_; }

  /// @param what  the field, for messages
  template <class T>
  T read(std::string_view what) {
    if (left() < sizeof(T)) fail_at(at_, what, "found " + std::to_string(left()) + " bytes, need " + size_text<T>());
    T value;
    std::memcpy(&value, file_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::string_view read_string(std::string_view what) {
    const std::uint64_t start = at_;
    const auto length = read<std::uint64_t>(what);
    if (length > left())
      fail_at(start, what, "found string length " + std::to_string(length) + ", " + left_text() + " are left");
    at_ += length;
    return {reinterpret_cast<const char*>(file_.data()) + at_ - length, length};
  }

  /// Returns the bytes read since `offset`.
  std::span<const std::byte> since(std::uint64_t offset) const noexcept { return file_.subspan(offset, at_ - offset); }

  /// Reads the number of items of at least `min_bytes` each. @throws Error kInput if the rest of the file cannot hold
  /// that many items, or if there are more than `most`.
  template <class T = std::uint64_t>
  T read_count(std::string_view what, std::uint64_t min_bytes, std::uint64_t most = std::numeric_limits<T>::max()) {
    const std::uint64_t start = at_;
    const auto count = read<T>(what);
    if (count > left() / min_bytes)
      fail_at(start, what,
              "found " + std::to_string(count) + ", each of at least " + std::to_string(min_bytes) + " bytes, but " +
                  left_text() + " are left");
    if (count > most)
      fail_at(start, what, "found " + std::to_string(count) + ", expected at most " + std::to_string(most));
    return count;
  }

  /// Returns the next `count` items of `each` bytes.
  std::span<const std::byte> read_bytes(std::string_view what, std::uint64_t count, std::uint64_t each) {
    const std::optional<std::uint64_t> bytes = checked_multiply(count, each);
    if (!bytes || *bytes > left())
      fail_at(at_, what,
              "found " + std::to_string(count) + " of " + std::to_string(each) + " bytes, but " + left_text() +
                  " are left");
    at_ += *bytes;
    return file_.subspan(at_ - *bytes, *bytes);
  }

  [[noreturn]] void fail_at(std::uint64_t offset, std::string_view what, std::string_view problem,
                            ErrorCode code = ErrorCode::kInput) const {
    throw Error(code, where_ + ": byte " + std::to_string(offset) + ": " + std::string(what), problem);
  }

 private:
  template <class T>
  static std::string size_text() {
    return std::to_string(sizeof(T));
  }
  std::string left_text() const { return std::to_string(left()) + " bytes"; }

  std::span<const std::byte> file_;
  std::string where_;
  std::uint64_t at_ = 0;
};

}  // namespace kvs::inline io
