#pragma once

#include <cstddef>

#include "model/model.h"
#include "results/model_info.h"

namespace kvs::inline run {

/// Files and types of tensors, geometry, RoPE, tokenizer, cache sizes, memory of each command at `window` tokens, and
/// which methods apply.  Cost: reading headers, metadata and the tokenizer.
ModelInfo model_info(const ModelSource& source, std::size_t window);

}  // namespace kvs::inline run
