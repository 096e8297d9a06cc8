// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "caches/layer_cache.h"

namespace kvs::inline caches {

/// For caches that act at every token. Attention runs token by token, each token as a group of its own, while the
/// layer's projections and its feed-forward block process the tokens together.
/// @param states  of one sequence;  @param out  as in LayerCache::attend
/// @param attend  called with a token's states and its row of `out`, in order
void for_each_token(LayerStates& states, const Operand& out,
                    const std::function<void(LayerStates& token, const Operand& row)>& attend);

}  // namespace kvs::inline caches
