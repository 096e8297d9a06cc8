// SPDX-License-Identifier: Apache-2.0
#include "io/gguf_parse.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

#include "core/checked.h"
#include "core/utf8.h"
#include "io/gguf_limits.h"
#include "io/gguf_metadata.h"
#include "io/safetensors_parse.h"

namespace kvs::inline io {
namespace {

constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;             // length, name, type, value
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // length, name, axes, one length, type, offset
constexpr std::uint64_t kMaxEntries = 1UL << 20;                  // limit of keys, and of tensors

/// A tensor as described by its entry. The offset counts from the start of the data section.
struct Entry {
  StoredTensor tensor;
  std::uint64_t offset = 0, size = 0;
  std::uint64_t field = 0;  // position of the offset field in the file
};

std::optional<std::uint64_t> rounded_up(std::uint64_t value, std::uint64_t alignment) {
  const auto sum = checked_add(value, alignment - 1);
  return sum ? std::optional(*sum & ~(alignment - 1)) : std::nullopt;
}

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> file, std::string_view where)
      : file_(file), reader_(file, where), where_(where) {}

  GgufContents parse() {
    read_magic();
    const std::uint64_t tensors = reader_.read_count("number of tensors", kMinTensorBytes, kMaxEntries);
    const std::uint64_t keys = reader_.read_count("number of metadata keys", kMinKeyBytes, kMaxEntries);
    GgufKeyValues read = read_gguf_metadata(reader_, keys);
    alignment_ = read.alignment;
    entries_.reserve(tensors);
    for (std::uint64_t index = 0; index < tensors; ++index) read_entry();
    place_entries();

    GgufContents contents{std::move(read.metadata), std::move(read.encoded), {}, std::move(warning_)};
    contents.tensors.reserve(entries_.size());
    for (Entry& entry : entries_) contents.tensors.push_back(std::move(entry.tensor));
    std::ranges::sort(contents.tensors, {}, &StoredTensor::name);
    return contents;
  }

 private:
  void read_magic() {
    const std::string_view magic(reinterpret_cast<const char*>(file_.data()), std::min<std::size_t>(file_.size(), 4));
    if (magic != "GGUF") reader_.fail_at(0, "magic", "found \"" + printable(magic) + "\", expected \"GGUF\"");
    reader_.read<std::uint32_t>("magic");
    const auto version = reader_.read<std::uint32_t>("version");
    if (version == 2 || version == 3) return;
    // In a big-endian file, the version's low byte is at the other end.
    const bool swapped = version != 0 && (version & 0xffffU) == 0;
    reader_.fail_at(4, "version",
                    swapped ? "found a big-endian file, expected a little-endian one"
                            : "found " + std::to_string(version) + ", expected 2 or 3",
                    ErrorCode::kUnsupported);
  }

  std::string_view read_name() {
    const std::uint64_t start = reader_.offset();
    const std::string_view name = reader_.read_string("tensor name");
    if (name.empty() || name.size() >= kGgufNameBytes)
      reader_.fail_at(start, "tensor name", "found " + std::to_string(name.size()) + " bytes, expected 1 to 63");
    if (name.find('\0') != name.npos || find_invalid_utf8(name) != name.npos)
      reader_.fail_at(start, "tensor name", "found \"" + printable(name) + "\", expected UTF-8 without NUL");
    if (!names_.insert(name).second) reader_.fail_at(start, "tensor name", "duplicate name \"" + printable(name) + '"');
    return name;
  }

  void read_entry() {
    Entry& entry = entries_.emplace_back();
    entry.tensor.name = read_name();
    const std::string what = "tensor \"" + printable(entry.tensor.name) + '"';
    const std::uint64_t shape_offset = reader_.offset();
    const auto axes = reader_.read<std::uint32_t>(what);
    if (axes < 1 || axes > kGgufMostAxes)
      reader_.fail_at(shape_offset, what, "found " + std::to_string(axes) + " axes, expected 1 to 4");
    auto& shape = entry.tensor.shape;
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
      shape.push_back(reader_.read<std::uint64_t>(what));
      if (shape.back() == 0 || shape.back() >> 63 != 0)
        reader_.fail_at(reader_.offset() - 8, what,
                        "found an axis of length " + std::to_string(shape.back()) + ", expected 1 to 2^63 - 1");
    }
    std::ranges::reverse(shape);  // the file lists the innermost axis first
    const std::uint64_t type_offset = reader_.offset();
    const auto number = reader_.read<std::uint32_t>(what);
    const ElementType* type = element_type_of_ggml(number);
    if (type == nullptr)
      reader_.fail_at(type_offset, what, "found type " + std::to_string(number) + ", unknown or removed");
    if (type->decode != nullptr) entry.tensor.type = type;
    entry.tensor.type_name = type->name;
    entry.size = checked_size(*type, shape, shape_offset, what);
    entry.field = reader_.offset();
    entry.offset = reader_.read<std::uint64_t>(what);
  }

  std::uint64_t checked_size(const ElementType& type, std::span<const std::uint64_t> shape, std::uint64_t offset,
                             std::string_view what) const {
    if (shape.back() % type.block_values != 0)
      reader_.fail_at(offset, what,
                      "found rows of " + std::to_string(shape.back()) + " numbers, expected a multiple of " +
                          std::to_string(type.block_values) + " for " + std::string(type.name));
    std::optional<std::uint64_t> values = 1;
    for (const std::uint64_t length : shape)
      if (values) values = checked_multiply(*values, length);
    const auto size = values ? checked_multiply(*values / type.block_values, type.block_bytes) : std::nullopt;
    if (!size) reader_.fail_at(offset, what, "overflow: the product of its shape and type size exceeds 64 bits");
    return *size;
  }

  /// Checks that the tensors, each padded to the alignment, follow each other without a gap. The last tensor may lack
  /// padding. Bytes after it are ignored.
  void place_entries() {
    const auto data = rounded_up(reader_.offset(), alignment_);  // below 2^63 + 65536: cannot overflow
    const std::uint64_t start = *data, size = file_.size() - std::min<std::uint64_t>(start, file_.size());
    std::ranges::sort(entries_, {}, &Entry::offset);
    std::uint64_t covered = 0;
    const Entry* before = nullptr;
    for (Entry& entry : entries_) {
      const std::string what = "tensor \"" + printable(entry.tensor.name) + '"';
      if (entry.offset % alignment_ != 0)
        reader_.fail_at(
            entry.field, what,
            "found offset " + std::to_string(entry.offset) + ", not aligned to " + std::to_string(alignment_));
      if (entry.offset < covered)
        reader_.fail_at(
            entry.field, what,
            "offset " + std::to_string(entry.offset) + " overlaps tensor \"" + printable(before->tensor.name) + '"');
      const auto end = checked_add(entry.offset, entry.size);
      const auto padded = end ? rounded_up(*end, alignment_) : std::nullopt;
      if (!padded) reader_.fail_at(entry.field, what, "overflow: offset and size exceed 64 bits");
      if (*end > size)
        reader_.fail_at(entry.field, what,
                        "ends at data byte " + std::to_string(*end) + ", but the data section at byte " +
                            std::to_string(start) + " has " + std::to_string(size) + " bytes: cut short?");
      if (entry.offset > covered) fail_uncovered(start + covered, start + entry.offset);
      entry.tensor.bytes = file_.subspan(start + entry.offset, entry.size);
      covered = *padded;
      before = &entry;
    }
    if (covered < size) warning_ = where_ + ": " + uncovered(start + covered, file_.size()) + ", after the last tensor";
  }

  static std::string uncovered(std::uint64_t begin, std::uint64_t end) {
    return "bytes " + std::to_string(begin) + ".." + std::to_string(end - 1) + " belong to no tensor";
  }

  [[noreturn]] void fail_uncovered(std::uint64_t begin, std::uint64_t end) const {
    reader_.fail_at(begin, "data", uncovered(begin, end));
  }

  std::span<const std::byte> file_;
  ByteReader reader_;
  std::string where_, warning_;
  std::uint64_t alignment_ = 0;
  std::unordered_set<std::string_view> names_;
  std::vector<Entry> entries_;
};

}  // namespace

GgufContents parse_gguf(std::span<const std::byte> file, std::string_view where) {
  return GgufParser(file, where).parse();
}

}  // namespace kvs::inline io
