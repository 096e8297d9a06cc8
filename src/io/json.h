// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_allocator.h"

namespace kvs::inline io {

/// The only JSON type of the project. Objects keep the order of their members (nlohmann's ordered_json). Its
/// allocator handles lack of memory.
using Json = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                                  double, JsonAllocator>;

struct JsonLimits {
  std::size_t bytes = 64UL << 20;
  std::size_t depth = 64;
  std::size_t values = 1UL << 23;  ///< total; "[],[],..." costs 16 times its length in memory
};

/// Parses strictly. Limits the depth while parsing (no recursion). Refuses duplicate keys, NUL bytes, invalid UTF-8,
/// numbers that overflow and text after the value. Integers that do not fit in 64 bits become doubles.
/// @param where  the file, for messages
/// @throws Error kInput "WHERE: line L, column C (byte B): ...", with columns and offset in bytes. Cost O(n log n) in
///         the members of an object.
Json parse_json(std::string_view text, std::string_view where, JsonLimits limits = {});

/// Writes `value` as text. Doubles get digits that read back to the same bits, nearly always the fewest (Grisu2).
/// @throws Error kData with the JSON pointer of the first NaN, infinity or string that is not UTF-8.
std::string dump_json(const Json& value, int indent = 2);

/// Describes `value` for a message: scalars as JSON, containers by their size.
std::string describe_json(const Json& value);

/// A position inside a parsed document. Its readers check types and ranges. Messages: "FILE: /pointer: found X,
/// expected Y" (kInput).
class JsonCursor {
 public:
  JsonCursor(const Json& value, std::string where, std::string pointer = "") noexcept;

  const Json& value() const noexcept { return *value_; }
  const std::string& pointer() const noexcept { return pointer_; }
  /// Returns "FILE: /pointer", for errors of other kinds than fail()'s.
  std::string place() const { return pointer_.empty() ? where_ : where_ + ": " + pointer_; }
  bool is_null() const noexcept { return value_->is_null(); }

  /// Returns member `key`. @throws Error kInput if this is not an object or lacks the key.
  JsonCursor at(std::string_view key) const;
  /// Returns true if this object has `key` with a value other than null. @throws Error kInput if this is not an object.
  bool has(std::string_view key) const;
  /// Returns element `index` of an array.
  JsonCursor at(std::size_t index) const;
  /// Returns the number of elements. @throws Error kInput if this is not an array.
  std::size_t array_size() const;
  std::vector<std::string> keys() const;

  const std::string& string() const;
  bool boolean() const;
  /// A finite number.
  double real() const;
  /// A finite number above 0.
  double positive() const;
  /// A finite number above 0 that f32 also represents with full precision.
  double positive_f32() const;
  /// A JSON integer inside [least, most]. Refuses 30.0, true and "30".
  std::int64_t integer(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t unsigned_integer(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const;

  /// @throws Error kInput "WHERE: POINTER: found <short value>, expected EXPECTED".
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const Json* value_;
  std::string where_, pointer_;
};

}  // namespace kvs::inline io
