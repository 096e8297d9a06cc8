// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "model/model.h"

namespace kvs::inline model {

/// Returns the free memory of a device, or of the system if the device has none of its own.
std::size_t memory_left(const Backend& backend);
/// Returns the number of passes over documents of `tokens` tokens that run in turns (turns/turns.h), so that each
/// streamed layer is read once for all of them: as many as half of the free memory holds; 1 if no layer is streamed.
/// @param kept  bytes that the caller keeps for each pass until it ends, besides caches
std::size_t passes_together(const Model& model, std::size_t tokens, std::size_t kept = 0);

}  // namespace kvs::inline model
