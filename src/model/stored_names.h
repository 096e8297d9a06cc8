// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_archive.h"
#include "model/parsed_config.h"
#include "model/tensor_shape.h"

namespace kvs::inline model {

/// Returns the table's name of a tensor in `format`; empty: the format has no such tensor.
std::string_view name_in(const TensorSpec& spec, ModelFormat format);

/// Returns the names that a tensor may have in a file, in the order in which they are tried:
///  - its names in a composite;
///  - its own name;
///  - its name without the prefix, as in a base class's own checkpoint;
///  - its name with one more prefix, as in a model that contains the class;
///  - its name in other versions of Transformers.
/// @param bias  of the tensor's bias
std::vector<std::string> file_names(const ParsedConfig& parsed, const TensorSpec& spec, ModelFormat format,
                                    std::size_t layer, bool bias = false, std::size_t expert = 0);

/// Returns the first of `names` that exists, or nullptr.
const StoredTensor* find_any(const TensorArchive& archive, std::span<const std::string> names);

/// Resolves tied weights of a Hugging Face model whose config ties head and embedding. As in Transformers 5, they are
/// tied only if both are equal or one of them is missing. Otherwise clears `parsed.config.tied_head` and adds a note.
/// @return the names that the embedding may have
/// Cost: reads both tensors if both are stored.
std::vector<std::string> settle_head(const TensorArchive& archive, ParsedConfig& parsed);

}  // namespace kvs::inline model
