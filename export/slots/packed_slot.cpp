// SPDX-License-Identifier: Apache-2.0
#include "export/slots/packed_slot.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "export/slots/state_file.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/json.h"
#include "io/json_fields.h"
#include "io/safetensors_parse.h"
#include "io/safetensors_writer.h"

namespace kvs::inline exporting {
namespace {

/// Removes a part that every slot has. @throws Error kInput
PackedPart taken(std::map<std::string, PackedPart>& parts, const std::string& name, std::string_view type,
                 const std::string& where) {
  const auto found = parts.find(name);
  if (found == parts.end() || found->second.type != type || found->second.shape.size() != 1)
    throw Error(ErrorCode::kInput, where + ": tensor " + name,
                "found no list of " + std::string(type) + ", expected a slot of `kvcalibrate slots pack`");
  PackedPart part = std::move(found->second);
  parts.erase(found);
  return part;
}

/// The only number of a tensor.
std::int32_t number_of(const PackedPart& part) {
  std::int32_t number = 0;
  if (part.bytes.size() == sizeof number) std::memcpy(&number, part.bytes.data(), sizeof number);
  return number;
}

void check_sum(std::uint32_t stated, const PackedPart& part, const std::string& name, const std::string& where) {
  if (const std::uint32_t found = crc32c(part.bytes); found != stated)
    throw Error(ErrorCode::kInput, where + ": tensor " + name,
                "found the checksum " + std::to_string(found) + ", expected " + std::to_string(stated) +
                    ": the file is damaged");
}

PackedHead head_of(const PackedPart& part, const std::string& where) {
  const Json json = parse_json({reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size()}, where);
  const JsonCursor cursor(json, where);
  if (const std::string& format = cursor.at("format").string(); format != PackedHead::kFormat)
    throw Error(ErrorCode::kUnsupported, where + ": /format", "found " + format + ", expected " + PackedHead::kFormat);
  auto head = from_json<PackedHead>(cursor);
  if (head.state_version != kStateVersion)
    throw Error(ErrorCode::kUnsupported, where + ": /state_version",
                "found " + std::to_string(head.state_version) + ", expected " + std::to_string(kStateVersion));
  return head;
}

}  // namespace

void write_packed(const std::filesystem::path& path, const PackedSlot& slot) {
  const auto tokens = std::as_bytes(std::span(slot.tokens));
  PackedHead stated = slot.head;
  stated.crc32c = {{"tokens", crc32c(tokens)}};
  for (const auto& [name, part] : slot.parts) stated.crc32c[name] = crc32c(part.bytes);
  const std::string head = dump_json(to_json(stated), -1);
  std::vector<StoredTensor> tensors;
  const auto add = [&](const std::string& name, const std::string& type, std::vector<std::uint64_t> shape,
                       std::span<const std::byte> bytes) {
    tensors.push_back({.name = name, .type_name = type, .shape = std::move(shape), .bytes = bytes});
  };
  const auto head_bytes = std::as_bytes(std::span(head));
  const std::uint32_t sum = crc32c(head_bytes);
  add("head", "U8", {head.size()}, head_bytes);
  add("checksum", "I32", {1}, std::as_bytes(std::span(&sum, 1)));
  add("tokens", "I32", {slot.tokens.size()}, tokens);
  for (const auto& [name, part] : slot.parts) add(name, part.type, part.shape, part.bytes);
  write_stored_tensors(path, tensors);
}

PackedSlot read_packed(const std::filesystem::path& path) {
  const std::string where = path.string();
  const MappedFile file(path);
  constexpr std::string_view kState = "qsgg";  // a file of llama.cpp
  if (std::memcmp(file.bytes().data(), kState.data(), std::min(kState.size(), file.bytes().size())) == 0)
    throw Error(ErrorCode::kInput, where, "found a state of llama.cpp, expected a packed slot");
  std::map<std::string, PackedPart> parts;
  for (const StoredTensor& tensor : parse_safetensors(file.bytes(), where))
    parts[tensor.name] = {tensor.type_name, tensor.shape, {tensor.bytes.begin(), tensor.bytes.end()}};
  PackedSlot slot;
  const PackedPart head = taken(parts, "head", "U8", where);
  check_sum(static_cast<std::uint32_t>(number_of(taken(parts, "checksum", "I32", where))), head, "head", where);
  slot.head = head_of(head, where + ": head");
  for (const auto& [name, part] : parts) {
    const auto stated = slot.head.crc32c.find(name);
    if (stated == slot.head.crc32c.end())
      throw Error(ErrorCode::kInput, where + ": tensor " + name, "found, expected only those that the head names");
    check_sum(stated->second, part, name, where);
  }
  const PackedPart tokens = taken(parts, "tokens", "I32", where);
  slot.tokens.resize(tokens.bytes.size() / sizeof(std::int32_t));
  std::memcpy(slot.tokens.data(), tokens.bytes.data(), tokens.bytes.size());
  slot.parts = std::move(parts);
  file.check_unchanged();
  return slot;
}

}  // namespace kvs::inline exporting
