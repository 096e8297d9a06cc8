// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/tensor_archive.h"
#include "model/architecture.h"
#include "model/config.h"

namespace kvs::inline model {

enum class ModelFormat : int { kHuggingFace, kGguf };

/// Returns a shape for messages: "[2, 3]".
std::string shape_text(std::span<const std::uint64_t> shape);
/// Returns "FILE: tensor NAME", for messages.
std::string place_of(const TensorArchive& archive, const StoredTensor& tensor);

/// The required length of a tensor's axis.
struct Extent {
  std::size_t size;
  std::string source;  // the config keys from which it follows
};
Extent extent_of(TensorAxis axis, const ModelConfig& config, std::size_t layer, ModelFormat format);

/// Returns true if a tensor of all experts, which holds the rows of all `parts`, is [expert, column, row].
bool is_transposed(std::span<const std::uint64_t> shape, std::span<const TensorSpec> parts, const ModelConfig& config,
                   std::size_t layer, ModelFormat format);

/// Checks the shape of a tensor, which holds the rows of all `parts`, against the config.
/// @param shape    of its values, if these are not in one plain tensor
/// @param bias     true if the tensor is their bias, a vector
/// @param stacked  true if the tensor holds these parts of all experts: [expert, …]
/// @throws Error kInput with both shapes and the config's keys.
void check_shape(const TensorArchive& archive, const StoredTensor& tensor, std::span<const std::uint64_t> shape,
                 std::span<const TensorSpec> parts, bool bias, bool stacked, const ModelConfig& config,
                 std::size_t layer, ModelFormat format);

/// Checks the type of a plain tensor. @throws Error kUnsupported with a type that cannot be decoded, or that is a code.
void check_type(const TensorArchive& archive, const StoredTensor& tensor, ModelFormat format);

}  // namespace kvs::inline model
