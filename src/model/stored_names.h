#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_archive.h"
#include "model/parsed_config.h"
#include "model/tensor_shape.h"

namespace kvs {

/// The table's name of a tensor in `format`; empty: the format has no such tensor.
std::string_view name_in(const TensorSpec& spec, ModelFormat format);

/// What a file may call a tensor of `row`: by its name, without the prefix that a base class's own checkpoint lacks,
/// with one more of a model that held the whole one, by its name in other versions of Transformers.
/// @param ending  ".weight" or ".bias"
std::vector<std::string> file_names(const Architecture& row, const TensorSpec& spec, ModelFormat format,
                                    std::size_t layer, std::string_view ending);

/// The first of `names` that is there, or nullptr.
const StoredTensor* find_any(const TensorArchive& archive, std::span<const std::string> names);

/// Of a Hugging Face model whose config ties head and embedding: as in Transformers 5 they are tied only where both are
/// equal or one of them is missing; else `parsed.config.tied_head` is cleared and a note added.
/// @return what the embedding may be called
/// Cost: reads both where both are stored.
std::vector<std::string> settle_head(const TensorArchive& archive, ParsedConfig& parsed);

}  // namespace kvs
