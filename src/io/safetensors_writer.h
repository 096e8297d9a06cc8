// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "io/output_tensor.h"
#include "io/tensor_archive.h"

namespace kvs::inline io {

/// Returns "F32", "BF16" or "F16". @throws Error kInternal for another type
std::string_view safetensors_name(DType type);

using SafetensorsMetadata = std::map<std::string, std::string>;

/// Writes tensors in the given order into a file that is missing or empty: first the header, padded with blanks to 8
/// bytes, then the values of each tensor.
/// @param metadata  becomes `__metadata__`, omitted if empty
/// @param progress  passed to OutputFile
/// @throws Error kData for a value that the type cannot represent or a text that is not UTF-8; kInternal for a name
///         that is used twice.
void write_safetensors(const std::filesystem::path& file, std::span<const OutputTensor> tensors,
                       const SafetensorsMetadata& metadata, std::function<void(std::uint64_t)> progress = {});

/// Writes tensors as they are stored into a file that is missing or empty, likewise.
void write_stored_tensors(const std::filesystem::path& file, std::span<const StoredTensor> tensors);

/// Writes a model into a folder as Transformers does: model.safetensors or, if a file would exceed `most` bytes,
/// model-00001-of-0000N.safetensors … and model.safetensors.index.json.
inline constexpr std::uint64_t kMaxShardBytes = 5'000'000'000;
void write_safetensors_shards(const std::filesystem::path& folder, std::span<const OutputTensor> tensors,
                              const std::function<void(std::uint64_t)>& progress = {},
                              std::uint64_t most = kMaxShardBytes);

}  // namespace kvs::inline io
