// SPDX-License-Identifier: Apache-2.0
#include "io/gguf_writer.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "io/gguf_limits.h"

namespace kvs::inline io {
namespace {

constexpr std::size_t kAlignment = 32;  // the format's default, which needs no metadata key

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out += text;
}

void append_type(std::string& out, GgufType type) { append(out, static_cast<std::uint32_t>(type)); }

template <class T>
void append_array(std::string& out, GgufType type, std::span<const T> values) {
  append_type(out, GgufType::kArray);
  append_type(out, type);
  append(out, std::uint64_t{values.size()});
}

/// ggml.h: enum ggml_type.
std::uint32_t tensor_type(DType type) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kBF16:
      return 30;
    case DType::kF64:
      break;
  }
  throw Error(ErrorCode::kInternal, "GGUF", "expected f32, bf16 or f16");
}

void check_entry(const OutputTensor& tensor, std::set<std::string_view>& names) {
  const auto fail = [&](std::string_view problem) {
    throw Error(ErrorCode::kInternal, "tensor \"" + printable(tensor.name, 80) + '"', problem);
  };
  if (tensor.name.empty() || tensor.name.size() >= kGgufNameBytes) fail("expected a name of 1 to 63 bytes");
  if (!names.insert(tensor.name).second) fail("the name is taken");
  if (tensor.shape.empty() || tensor.shape.size() > kGgufMostAxes || std::ranges::count(tensor.shape, 0U) > 0)
    fail("expected 1 to 4 axes, none of them empty");
}

std::uint64_t aligned(std::uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void GgufMetadataWriter::add_key(std::string_view key) {
  if (key.empty() || key.size() > kGgufMostKeyBytes || !keys_.emplace(key).second)
    throw Error(ErrorCode::kInternal, "key \"" + printable(key, 80) + '"',
                "expected one of 1 to 65535 bytes that is not taken");
  append_text(bytes_, key);
}

void GgufMetadataWriter::add(std::string_view key, std::uint32_t value) {
  add_key(key);
  append_type(bytes_, GgufType::kU32);
  append(bytes_, value);
}

void GgufMetadataWriter::add(std::string_view key, float value) {
  add_key(key);
  append_type(bytes_, GgufType::kF32);
  append(bytes_, value);
}

void GgufMetadataWriter::add(std::string_view key, bool value) {
  add_key(key);
  append_type(bytes_, GgufType::kBool);
  append(bytes_, static_cast<std::uint8_t>(value));
}

void GgufMetadataWriter::add(std::string_view key, std::string_view value) {
  add_key(key);
  append_type(bytes_, GgufType::kString);
  append_text(bytes_, value);
}

void GgufMetadataWriter::add(std::string_view key, std::span<const std::string_view> values) {
  add_key(key);
  append_array(bytes_, GgufType::kString, values);
  for (const std::string_view value : values) append_text(bytes_, value);
}

void GgufMetadataWriter::add(std::string_view key, std::span<const std::int32_t> values) {
  add_key(key);
  append_array(bytes_, GgufType::kI32, values);
  for (const std::int32_t value : values) append(bytes_, value);
}

void GgufMetadataWriter::add(std::string_view key, std::span<const float> values) {
  add_key(key);
  append_array(bytes_, GgufType::kF32, values);
  for (const float value : values) append(bytes_, value);
}

void GgufMetadataWriter::add_encoded(std::string_view key, std::span<const std::byte> value) {
  add_key(key);
  bytes_.append(reinterpret_cast<const char*>(value.data()), value.size());
}

void write_gguf(const std::filesystem::path& file, const GgufMetadataWriter& metadata,
                std::span<const OutputTensor> tensors, std::function<void(std::uint64_t)> progress) {
  std::string head = "GGUF";
  append(head, std::uint32_t{3});
  append(head, std::uint64_t{tensors.size()});
  append(head, metadata.count());
  head += metadata.bytes();
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const OutputTensor& tensor : tensors) {
    check_entry(tensor, names);
    append_text(head, tensor.name);
    append(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) append(head, tensor.shape[axis]);  // innermost first
    append(head, tensor_type(tensor.type));
    append(head, offset);
    offset += aligned(tensor.bytes());
  }
  OutputFile out(file, std::move(progress));
  out.write(head);
  out.pad(kAlignment);
  for (const OutputTensor& tensor : tensors) {
    out.write(tensor);
    out.pad(kAlignment);
  }
}

}  // namespace kvs::inline io
