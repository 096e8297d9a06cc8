// SPDX-License-Identifier: Apache-2.0
#include "export/codec/stream.h"

#include <cstring>
#include <string>

#include "core/error.h"

namespace kvs::inline exporting {
namespace {

constexpr std::array<char, 4> kFormat{'K', 'V', 'S', 'C'};
constexpr std::uint16_t kStreamVersion = 1;

/// Calls field(member) for the members of a head in their order.
template <class Head, class Field>
void each_field(Head& head, Field field) {
  field(head.rows);
  field(head.id);
  field(head.layer);
  field(head.tokens);
  field(head.first_position);
  field(head.sinks);
  field(head.outliers);
}

}  // namespace

void write_head(const StreamHead& head, std::span<std::byte> to) {
  std::byte* at = to.data();
  const auto write = [&](const auto& field) {
    std::memcpy(at, &field, sizeof(field));
    at += sizeof(field);
  };
  write(kFormat);
  write(kStreamVersion);
  each_field(head, write);
}

StreamHead read_head(std::span<const std::byte> stream) {
  if (stream.size() < StreamHead::kBytes)
    throw Error(
        ErrorCode::kData, "stream",
        "found " + std::to_string(stream.size()) + " bytes, expected at least " + std::to_string(StreamHead::kBytes));
  const std::byte* at = stream.data();
  const auto read = [&](auto& field) {
    std::memcpy(&field, at, sizeof(field));
    at += sizeof(field);
  };
  std::array<char, 4> format{};
  std::uint16_t version = 0;
  StreamHead head;
  read(format);
  read(version);
  each_field(head, read);
  if (format != kFormat) throw Error(ErrorCode::kData, "stream", "found another format, expected KVSC");
  if (version != kStreamVersion)
    throw Error(ErrorCode::kData, "stream",
                "version: found " + std::to_string(version) + ", expected " + std::to_string(kStreamVersion));
  return head;
}

}  // namespace kvs::inline exporting
