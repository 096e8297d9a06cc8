// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline io {

/// Parses one safetensors file. Returns its tensors in byte order of names, as views into `file`.
/// @param where  the file, for messages.  @throws Error as open_safetensors().
std::vector<StoredTensor> parse_safetensors(std::span<const std::byte> file, std::string_view where);

/// The contents of a model.safetensors.index.json.
struct SafetensorsIndex {
  std::map<std::string, std::string> shard_of;  // tensor name to file name (without a folder)
  std::optional<std::uint64_t> total_size;      // stated size of all tensors in bytes
};
SafetensorsIndex parse_safetensors_index(std::string_view json, std::string_view where);

}  // namespace kvs::inline io
