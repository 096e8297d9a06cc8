// SPDX-License-Identifier: Apache-2.0
#include "io/torch_file.h"

#include <array>
#include <bit>
#include <limits>

#include "core/error.h"

namespace kvs::inline io {
namespace {

template <class T>
void append(std::string& out, T value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte)
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * byte) & 0xffU);
}

std::uint32_t narrow_size(std::size_t size) {
  if (size > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::kInternal, "torch_file", "more than 4 GiB");
  return static_cast<std::uint32_t>(size);
}

/// CRC-32 of ISO 3309, as zip uses it.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

struct ZipEntry {
  std::string_view name, bytes;
};

/// Fields shared by a local header and the directory: version, flags, method 0, DOS time and date (1980-01-01), sizes.
std::string zip_fields(const ZipEntry& entry) {
  std::string out;
  append(out, std::uint16_t{20});
  append(out, std::uint16_t{0});
  append(out, std::uint16_t{0});
  append(out, std::uint32_t{0x00210000});
  append(out, crc32(entry.bytes));
  append(out, narrow_size(entry.bytes.size()));
  append(out, narrow_size(entry.bytes.size()));
  append(out, static_cast<std::uint16_t>(entry.name.size()));
  append(out, std::uint16_t{0});  // extra field
  return out;
}

std::string zip_file(std::span<const ZipEntry> entries) {
  std::string out, directory;
  for (const ZipEntry& entry : entries) {
    const std::string fields = zip_fields(entry);
    directory += std::string("PK\1\2") + '\24' + '\0' + fields;  // made by version 2.0
    directory.append(10, '\0');                                  // comment, disk, attributes
    append(directory, narrow_size(out.size()));
    directory += entry.name;
    out += "PK\3\4" + fields;
    out += entry.name;
    out += entry.bytes;
  }
  const std::uint32_t start = narrow_size(out.size());
  out += directory;
  out += std::string("PK\5\6") + std::string(4, '\0');
  append(out, static_cast<std::uint16_t>(entries.size()));
  append(out, static_cast<std::uint16_t>(entries.size()));
  append(out, narrow_size(directory.size()));
  append(out, start);
  append(out, std::uint16_t{0});  // comment
  return out;
}

void add_extents(Pickle& pickle, std::span<const std::size_t> extents) {
  pickle.mark();
  for (const std::size_t extent : extents) pickle.integer(static_cast<std::int64_t>(extent));
  pickle.tuple();
}

/// A tensor's place in the file's storage.
struct StoredPlace {
  std::string_view storage;  // class of torch
  std::size_t values;        // of the storage
  std::size_t offset = 0;
};

/// torch._utils._rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)
void add_tensor(Pickle& pickle, const StoredPlace& place, std::span<const std::size_t> shape) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t axis = strides.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  pickle.global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle.mark().string("storage");
  pickle.global("torch", place.storage);
  pickle.string("0").string("cpu").integer(static_cast<std::int64_t>(place.values)).tuple().persistent_id();
  pickle.integer(static_cast<std::int64_t>(place.offset));
  add_extents(pickle, shape);
  add_extents(pickle, strides);
  pickle.boolean(false);
  pickle.global("collections", "OrderedDict").mark().tuple().reduce();
  pickle.tuple().reduce();
}

std::string torch_zip(std::string_view pickle, std::string_view numbers) {
  return zip_file(std::array<ZipEntry, 4>{ZipEntry{"archive/data.pkl", pickle}, ZipEntry{"archive/byteorder", "little"},
                                          ZipEntry{"archive/data/0", numbers}, ZipEntry{"archive/version", "3\n"}});
}

}  // namespace

Pickle::Pickle() : bytes_("\x80\x02") {}

Pickle& Pickle::code(char opcode) {
  bytes_ += opcode;
  return *this;
}

Pickle& Pickle::counted(char opcode, std::string_view bytes) {
  bytes_ += opcode;
  append(bytes_, narrow_size(bytes.size()));
  bytes_ += bytes;
  return *this;
}

Pickle& Pickle::string(std::string_view text) { return counted('X', text); }
Pickle& Pickle::bytes(std::string_view bytes) { return counted('B', bytes); }

Pickle& Pickle::integer(std::int64_t value) {
  bytes_ += "\x8a\x08";  // LONG1 of 8 bytes
  append(bytes_, value);
  return *this;
}

Pickle& Pickle::boolean(bool value) { return code(value ? '\x88' : '\x89'); }

Pickle& Pickle::global(std::string_view module, std::string_view name) {
  (bytes_ += 'c').append(module) += '\n';
  bytes_.append(name) += '\n';
  return *this;
}

std::string Pickle::finish() && {
  bytes_ += '.';
  return std::move(bytes_);
}

std::string torch_file(const IntegerTensor& tensor) {
  std::string numbers;
  for (const std::int64_t value : tensor.values) {
    if (tensor.kind == IntegerTensor::Kind::kUint8) {
      append(numbers, static_cast<std::uint8_t>(value));
    } else {
      append(numbers, value);
    }
  }
  Pickle pickle;
  add_tensor(pickle, {tensor.kind == IntegerTensor::Kind::kUint8 ? "ByteStorage" : "LongStorage", tensor.values.size()},
             tensor.shape);
  return torch_zip(std::move(pickle).finish(), numbers);
}

void FloatTorchFile::vector(std::span<const float> values) {
  const std::array shape{values.size()};
  add_tensor(pickle_, {"FloatStorage", all_, count_}, shape);
  count_ += values.size();
  if (count_ > all_) throw Error(ErrorCode::kInternal, "torch_file", "more values than the file has");
  for (const float value : values) append(numbers_, std::bit_cast<std::uint32_t>(value));
}

std::string FloatTorchFile::finish() && {
  if (count_ != all_) throw Error(ErrorCode::kInternal, "torch_file", "fewer values than the file has");
  return torch_zip(std::move(pickle_).finish(), numbers_);
}

}  // namespace kvs::inline io
