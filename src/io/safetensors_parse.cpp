// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_parse.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "core/error.h"
#include "core/utf8.h"
#include "io/python_json.h"

namespace kvs::inline io {
namespace {

constexpr std::uint64_t kPrefix = 8;                  // length of the header, a little-endian u64
constexpr std::uint64_t kMaxHeaderBytes = 100000000;  // the format's own limit
// At least seven values describe a tensor. 2^22 values cost up to about 600 MB while they are read.
constexpr JsonLimits kHeaderLimits{.bytes = kMaxHeaderBytes, .depth = 4, .values = 1UL << 22};
constexpr JsonLimits kIndexLimits{.bytes = kMaxHeaderBytes, .depth = 16, .values = 1UL << 22};
constexpr std::size_t kShownBytes = 80;  // maximum number of bytes of a file's content in a message

/// A tensor as described by the header. Offsets count from the end of the header.
struct HeaderEntry {
  StoredTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

std::string in_quotes(std::string_view name) { return '"' + printable(name, kShownBytes) + '"'; }

std::string short_dump(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), kShownBytes);
}

class HeaderParser {
 public:
  HeaderParser(std::span<const std::byte> file, std::string_view where) : file_(file), where_(where) {}

  std::vector<StoredTensor> parse() {
    const Json header = parse_header();
    entries_.reserve(header.size());
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__")
        check_metadata(value);
      else
        entries_.push_back(parse_entry(name, value));
    }
    place_entries();
    std::vector<StoredTensor> tensors;
    tensors.reserve(entries_.size());
    for (HeaderEntry& entry : entries_) tensors.push_back(std::move(entry.tensor));
    std::ranges::sort(tensors, {}, &StoredTensor::name);
    return tensors;
  }

 private:
  [[noreturn]] void fail(std::string_view place, std::string_view problem) const {
    throw Error(ErrorCode::kInput, where_ + ": " + std::string(place), problem);
  }

  [[noreturn]] void fail_tensor(std::string_view name, std::string_view problem) const {
    fail("tensor " + in_quotes(name), problem);
  }

  std::string_view text(std::uint64_t offset, std::uint64_t size) const {
    return {reinterpret_cast<const char*>(file_.data()) + offset, size};
  }

  Json parse_header() {
    if (file_.size() < kPrefix)
      fail("byte 0", "found " + std::to_string(file_.size()) + " bytes, need 8 for the header length");
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), kPrefix);
    if (length > kMaxHeaderBytes) refuse_long_header(length);
    if (length > file_.size() - kPrefix)
      fail("byte 0", "found header length " + std::to_string(length) + ", but " +
                         std::to_string(file_.size() - kPrefix) + " bytes follow it");
    const std::string_view header = text(kPrefix, length);
    if (const std::size_t at = find_invalid_utf8(header); at != header.npos)
      fail("byte " + std::to_string(kPrefix + at), "found invalid UTF-8 in the header");
    data_ = kPrefix + length;
    Json parsed = parse_json(header, where_ + ": header at byte 8", kHeaderLimits);
    if (!parsed.is_object()) fail("header at byte 8", "found " + short_dump(parsed) + ", expected a JSON object");
    return parsed;
  }

  [[noreturn]] void refuse_long_header(std::uint64_t length) const {
    const std::string_view start = text(0, kPrefix);
    // A zip's local file header, or a pickle's PROTO opcode with protocol 2 to 5.
    if (start.starts_with("PK\3\4") || (start[0] == '\x80' && start[1] >= 2 && start[1] <= 5))
      throw Error(ErrorCode::kUnsupported, where_, "found a pickle or a zip; only safetensors and GGUF are read");
    fail("byte 0",
         "found header length " + std::to_string(length) + ", expected at most " + std::to_string(kMaxHeaderBytes));
  }

  void check_metadata(const Json& metadata) const {
    if (metadata.is_null()) return;
    if (!metadata.is_object())
      fail("__metadata__", "found " + short_dump(metadata) + ", expected an object of strings");
    for (const auto& [key, value] : metadata.items())
      if (!value.is_string())
        fail("__metadata__: " + in_quotes(key), "found " + short_dump(value) + ", expected a string");
  }

  /// Stricter than the JSON library's getter: refuses true, 4.0 and -0.
  std::uint64_t size_at(std::string_view tensor, std::string_view member, const Json& value) const {
    if (!value.is_number_unsigned())
      fail_tensor(tensor, std::string(member) + ": found " + short_dump(value) + ", expected an integer below 2^64");
    return value.get<std::uint64_t>();
  }

  HeaderEntry parse_entry(const std::string& name, const Json& value) const {
    if (!value.is_object()) fail_tensor(name, "found " + short_dump(value) + ", expected an object");
    const Json *dtype = nullptr, *shape = nullptr, *offsets = nullptr;
    for (const auto& [key, member] : value.items()) {
      const bool is_dtype = key == "dtype", is_shape = key == "shape", is_offsets = key == "data_offsets";
      if (!is_dtype && !is_shape && !is_offsets) continue;  // the safetensors crate ignores other members too
      const bool fits = is_dtype ? member.is_string() : member.is_array() && (is_shape || member.size() == 2);
      if (!fits)
        fail_tensor(name, "found " + in_quotes(key) + ": " + short_dump(member) +
                              ", expected dtype (a string), shape (a list) and data_offsets (two integers)");
      (is_dtype ? dtype : is_shape ? shape : offsets) = &member;
    }
    if (dtype == nullptr || shape == nullptr || offsets == nullptr)
      fail_tensor(name, std::string("found no ") + (dtype == nullptr   ? "dtype"
                                                    : shape == nullptr ? "shape"
                                                                       : "data_offsets"));
    HeaderEntry entry;
    entry.tensor.name = name;
    entry.tensor.type_name = dtype->get_ref<const std::string&>();
    for (const Json& length : *shape) entry.tensor.shape.push_back(size_at(name, "shape", length));
    entry.begin = size_at(name, "data_offsets", (*offsets)[0]);
    entry.end = size_at(name, "data_offsets", (*offsets)[1]);
    check_size(entry);
    return entry;
  }

  void check_size(HeaderEntry& entry) const {
    StoredTensor& tensor = entry.tensor;
    const ElementType* type = element_type_of_safetensors(tensor.type_name);
    if (type == nullptr) fail_tensor(tensor.name, "found unknown dtype " + in_quotes(tensor.type_name));
    if (type->decode != nullptr) tensor.type = type;
    if (entry.begin > entry.end)
      fail_tensor(tensor.name, "data_offsets: found [" + std::to_string(entry.begin) + ", " +
                                   std::to_string(entry.end) + "], expected the start before the end");
    std::optional<std::uint64_t> values = 1;
    for (const std::uint64_t length : tensor.shape)
      if (values) values = checked_multiply(*values, length);
    // The crate multiplies by bits. For 64-bit numbers that overflows at an eighth of the byte count's limit.
    const std::uint64_t bits = 8UL * type->block_bytes / type->block_values;
    if (!values || !checked_multiply(*values, bits))
      fail_tensor(tensor.name, "overflow: the product of its shape and item size does not fit in 64 bits");
    if (*values % type->block_values != 0)
      fail_tensor(tensor.name, "found " + std::to_string(*values) + " numbers of dtype " + tensor.type_name +
                                   ", which do not fill whole bytes");
    const std::uint64_t needed = *values / type->block_values * type->block_bytes;
    if (needed != entry.end - entry.begin)
      fail_tensor(tensor.name, "shape and dtype need " + std::to_string(needed) + " bytes, data_offsets give " +
                                   std::to_string(entry.end - entry.begin));
  }

  /// Checks that the tensors fill the data section: in order of offsets, each must start where the previous one ends.
  void place_entries() {
    std::ranges::sort(entries_, [](const HeaderEntry& a, const HeaderEntry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const std::uint64_t size = file_.size() - data_;
    std::uint64_t covered = 0;
    const HeaderEntry* before = nullptr;
    for (HeaderEntry& entry : entries_) {
      if (entry.begin < covered)
        fail_tensor(entry.tensor.name, "overlaps tensor " + in_quotes(before->tensor.name) + ": starts at data byte " +
                                           std::to_string(entry.begin) + ", before byte " + std::to_string(covered));
      if (entry.begin > covered) fail_uncovered(covered, entry.begin);
      if (entry.end > size)
        fail_tensor(entry.tensor.name, "ends at byte " + std::to_string(data_ + entry.end) + " of a file of " +
                                           std::to_string(file_.size()) + " bytes: cut short?");
      entry.tensor.bytes = file_.subspan(data_ + entry.begin, entry.end - entry.begin);
      covered = entry.end;
      before = &entry;
    }
    if (covered < size) fail_uncovered(covered, size);
  }

  [[noreturn]] void fail_uncovered(std::uint64_t begin, std::uint64_t end) const {
    const auto last = checked_add(data_, end - 1);
    fail("data", "bytes " + std::to_string(data_ + begin) + ".." + (last ? std::to_string(*last) : "2^64") +
                     " belong to no tensor");
  }

  std::span<const std::byte> file_;
  std::string where_;
  std::uint64_t data_ = 0;  // offset of the data section
  std::vector<HeaderEntry> entries_;
};

}  // namespace

std::vector<StoredTensor> parse_safetensors(std::span<const std::byte> file, std::string_view where) {
  return HeaderParser(file, where).parse();
}

SafetensorsIndex parse_safetensors_index(std::string_view json, std::string_view where) {
  const Json document = parse_python_json(json, where, kIndexLimits);
  const JsonCursor root(document, std::string(where));
  const JsonCursor map = root.at("weight_map");
  if (!map.value().is_object()) map.fail("an object of file names");
  SafetensorsIndex index;
  for (const auto& [tensor, file] : map.value().items()) {
    const auto* name = file.get_ptr<const std::string*>();
    const std::string place = std::string(where) + ": weight_map: " + in_quotes(tensor);
    if (name == nullptr) throw Error(ErrorCode::kInput, place, "found " + short_dump(file) + ", expected a file name");
    if (name->empty() || *name == "." || *name == ".." ||
        name->find_first_of(std::string_view("/\\\0", 3)) != name->npos)
      throw Error(ErrorCode::kInput, place, "found " + in_quotes(*name) + ", not a plain file name");
    index.shard_of.emplace(tensor, *name);
  }
  if (index.shard_of.empty()) map.fail("at least one tensor");
  // Without a total that is an integer there is nothing to compare.
  if (root.has("metadata") && root.at("metadata").has("total_size")) {
    const Json& total = root.at("metadata").at("total_size").value();
    if (total.is_number_unsigned()) index.total_size = total.get<std::uint64_t>();
  }
  return index;
}

}  // namespace kvs::inline io
