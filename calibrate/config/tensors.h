// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/tensor_archive.h"

namespace kvs::inline calibrate {

/// A tensor of a config's files, in memory.
struct FactorTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // outermost axis first
  std::vector<float> values;
};

/// Returns a tensor of a config's files by name. @throws Error kInput unless it has this shape; kData on NaN or
/// infinity in a file
using FactorReader =
    std::function<std::vector<float>(const std::string& name, const std::vector<std::uint64_t>& shape)>;

/// Returns a reader of tensors that are in memory only; they must outlive it.
FactorReader reader_of(const std::vector<FactorTensor>& tensors);
/// Returns a reader of a file's tensors; `archive` must outlive it.
/// @param path  of the file, for messages
FactorReader reader_of(const TensorArchive& archive, const std::filesystem::path& path);

}  // namespace kvs::inline calibrate
