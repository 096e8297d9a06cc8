// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "model/model.h"
#include "results/model_info.h"

namespace kvs::inline run {

/// Returns files and types of tensors, geometry, RoPE, tokenizer, cache sizes, memory of commands at `window` tokens,
/// the methods that apply, and the caches that each engine executes.
/// Cost: reading headers, metadata and the tokenizer.
ModelInfo model_info(const ModelSource& source, std::size_t window);

}  // namespace kvs::inline run
