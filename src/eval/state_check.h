// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "model/decoder.h"

namespace kvs::inline eval {

/// Runs `tokens` without a cache and finds the first query, key or value before RoPE that is NaN or infinite. For use
/// after a pass has failed.
/// @throws Error kData naming layer, head and token, if there is one
void check_states(Decoder& decoder, std::span<const std::int32_t> tokens);

}  // namespace kvs::inline eval
