// SPDX-License-Identifier: Apache-2.0
#include "io/gguf_metadata.h"

#include <bit>
#include <limits>
#include <utility>

#include "core/utf8.h"
#include "io/gguf_limits.h"

namespace kvs::inline io {
namespace {

using Type = GgufType;

constexpr std::uint64_t kMaxElements = 1UL << 25;  // total of all arrays: at most 512 MB in memory
constexpr std::uint64_t kMaxAlignment = 65536;

class MetadataParser {
 public:
  explicit MetadataParser(ByteReader& reader) : reader_(reader) {}

  GgufKeyValues parse(std::uint64_t count) {
    for (std::uint64_t index = 0; index < count; ++index) {
      const std::uint64_t start = reader_.offset();
      const std::string key = read_key();
      const auto [place, fresh] = keys_.metadata.try_emplace(key);
      if (!fresh) reader_.fail_at(start, what_, "duplicate key");
      const std::uint64_t type_offset = reader_.offset();
      const Type type = read_type();
      place->second = type == Type::kArray ? GgufValue(read_array()) : read_scalar(type);
      keys_.encoded.emplace(key, reader_.since(type_offset));
      if (key == "general.alignment") set_alignment(type_offset, type, place->second);
    }
    return std::move(keys_);
  }

 private:
  std::string read_key() {
    const std::uint64_t start = reader_.offset();
    const std::string_view key = reader_.read_string("metadata key");
    if (key.empty()) reader_.fail_at(start, "metadata key", "found an empty key");
    if (key.size() > kGgufMostKeyBytes)
      reader_.fail_at(start, "metadata key", "found " + std::to_string(key.size()) + " bytes, expected at most 65535");
    if (find_invalid_utf8(key) != key.npos)
      reader_.fail_at(start, "metadata key", "found invalid UTF-8: \"" + printable(key, 80) + '"');
    what_ = "key \"" + printable(key, 80) + '"';
    return std::string(key);
  }

  Type read_type() {
    const auto type = reader_.read<std::uint32_t>(what_);
    if (type >= kGgufTypes)
      reader_.fail_at(reader_.offset() - 4, what_, "found value type " + std::to_string(type) + ", expected 0 to 12");
    return static_cast<Type>(type);
  }

  template <class T>
  T read() {
    return reader_.read<T>(what_);
  }

  bool read_bool() { return read<std::uint8_t>() != 0; }  // as llama.cpp does

  GgufValue read_scalar(Type type) {
    switch (type) {
      case Type::kU8:
        return std::uint64_t{read<std::uint8_t>()};
      case Type::kI8:
        return std::int64_t{read<std::int8_t>()};
      case Type::kU16:
        return std::uint64_t{read<std::uint16_t>()};
      case Type::kI16:
        return std::int64_t{read<std::int16_t>()};
      case Type::kU32:
        return std::uint64_t{read<std::uint32_t>()};
      case Type::kI32:
        return std::int64_t{read<std::int32_t>()};
      case Type::kU64:
        return read<std::uint64_t>();
      case Type::kI64:
        return read<std::int64_t>();
      case Type::kF32:
        return double{read<float>()};
      case Type::kF64:
        return read<double>();
      case Type::kBool:
        return read_bool();
      case Type::kString:
        return reader_.read_string(what_);
      case Type::kArray:
        break;  // parse() and read_array() never pass an array here
    }
    throw Error(ErrorCode::kInternal, "read_scalar", "not a scalar type");
  }

  GgufArray read_array() {
    const std::uint64_t start = reader_.offset();
    const Type type = read_type();
    switch (type) {
      case Type::kU8:
        return read_elements<std::uint8_t, std::int64_t>();
      case Type::kI8:
        return read_elements<std::int8_t, std::int64_t>();
      case Type::kU16:
        return read_elements<std::uint16_t, std::int64_t>();
      case Type::kI16:
        return read_elements<std::int16_t, std::int64_t>();
      case Type::kU32:
        return read_elements<std::uint32_t, std::int64_t>();
      case Type::kI32:
        return read_elements<std::int32_t, std::int64_t>();
      case Type::kU64:
        return read_elements<std::uint64_t, std::int64_t>();
      case Type::kI64:
        return read_elements<std::int64_t, std::int64_t>();
      case Type::kF32:
        return read_elements<float, double>();
      case Type::kF64:
        return read_elements<double, double>();
      case Type::kBool:
        return read_elements<std::uint8_t, bool>();
      case Type::kString:
        return read_elements<std::string_view, std::string_view>();
      case Type::kArray:
        break;
    }
    reader_.fail_at(start, what_, "found an array of arrays, expected an array of scalars or strings");
  }

  /// @tparam Stored  an element's type in the file; a view for a string
  template <class Stored, class Element>
  std::vector<Element> read_elements() {
    constexpr bool kStrings = std::is_same_v<Stored, std::string_view>;
    const std::uint64_t count =
        reader_.read_count(what_ + ", array length", kStrings ? 8 : sizeof(Stored), kMaxElements - elements_);
    elements_ += count;
    std::vector<Element> values;
    values.reserve(count);
    for (std::uint64_t index = 0; index < count; ++index) {
      if constexpr (kStrings)
        values.push_back(reader_.read_string(what_));
      else if constexpr (std::is_same_v<Element, bool>)
        values.push_back(read_bool());
      else if constexpr (std::is_same_v<Stored, std::uint64_t>)
        values.push_back(read_signed());
      else
        values.push_back(Element{read<Stored>()});
    }
    return values;
  }

  std::int64_t read_signed() {
    const auto value = read<std::uint64_t>();
    if (!std::in_range<std::int64_t>(value))
      reader_.fail_at(reader_.offset() - 8, what_, "found " + std::to_string(value) + ", expected below 2^63");
    return static_cast<std::int64_t>(value);
  }

  void set_alignment(std::uint64_t offset, Type type, const GgufValue& value) {
    const auto* alignment = std::get_if<std::uint64_t>(&value);
    if (type != Type::kU32 || alignment == nullptr) reader_.fail_at(offset, what_, "expected a UINT32");
    if (!std::has_single_bit(*alignment) || *alignment > kMaxAlignment)
      reader_.fail_at(offset, what_, "found " + std::to_string(*alignment) + ", expected a power of two up to 65536");
    keys_.alignment = *alignment;
  }

  ByteReader& reader_;
  std::string what_;  // the key being read, for messages
  std::uint64_t elements_ = 0;
  GgufKeyValues keys_;
};

}  // namespace

GgufKeyValues read_gguf_metadata(ByteReader& reader, std::uint64_t count) {
  return MetadataParser(reader).parse(count);
}

}  // namespace kvs::inline io
