#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_archive.h"

namespace kvs {

/// The tensors of one safetensors file, in byte order of names, as views into `file`.
/// @param where  the file, for messages.  @throws Error as open_safetensors().
std::vector<StoredTensor> parse_safetensors(std::span<const std::byte> file, std::string_view where);

/// A model.safetensors.index.json.
struct SafetensorsIndex {
  std::map<std::string, std::string> shard_of;  // tensor name to file name, a plain one
  std::optional<std::uint64_t> total_size;      // bytes of all tensors, as stated
};
SafetensorsIndex parse_safetensors_index(std::string_view json, std::string_view where);

}  // namespace kvs
