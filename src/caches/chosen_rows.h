// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "caches/layer_cache.h"

namespace kvs::inline caches {

/// Like attend_rows() for tokens of latent attention that read the rows of `states.chosen` alone. Cost of a token: a
/// copy of its rows, and attention over them.
/// @param past  the rows of all earlier tokens
void attend_chosen(const LayerStates& states, const PastKv& past, const Operand& out);

}  // namespace kvs::inline caches
