#pragma once

#include <cstddef>
#include <string>

#include "io/json.h"
#include "model/model.h"

namespace kvs {

/// What there is to know about a model without reading a weight (docs/models.md lists the members): files and types of
/// tensors, geometry, RoPE, tokenizer, cache sizes, memory of each command at `window` tokens, and which methods apply.
/// Cost: reading headers, metadata and the tokenizer.
Json model_report(const ModelSource& source, std::size_t window);

/// The same for reading, a few dozen lines.
std::string report_text(const Json& report);

}  // namespace kvs
