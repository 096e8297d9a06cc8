#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "io/output_tensor.h"

namespace kvs {

using SafetensorsMetadata = std::map<std::string, std::string>;

/// Writes tensors in the order given into a file that is absent or empty: the header first, padded with blanks to 8
/// bytes, then the values of one tensor after the other.
/// @param metadata  becomes `__metadata__`, left out if empty
/// @param progress  of OutputFile
/// @throws Error kData for a value that the type does not hold or a text that is not UTF-8; kInternal for a name
///         that is taken.
void write_safetensors(const std::filesystem::path& file, std::span<const OutputTensor> tensors,
                       const SafetensorsMetadata& metadata, std::function<void(std::uint64_t)> progress = {});

/// Writes a model into a folder as Transformers does: model.safetensors, or, where a file would exceed `most` bytes,
/// model-00001-of-0000N.safetensors … and model.safetensors.index.json.
inline constexpr std::uint64_t kMaxShardBytes = 5'000'000'000;
void write_safetensors_shards(const std::filesystem::path& folder, std::span<const OutputTensor> tensors,
                              const std::function<void(std::uint64_t)>& progress = {},
                              std::uint64_t most = kMaxShardBytes);

}  // namespace kvs
