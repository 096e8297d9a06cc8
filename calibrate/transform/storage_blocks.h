// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "calibrate/transform/level_coder.h"
#include "calibrate/transform/products.h"

namespace kvs::inline calibrate {

// Blocks of a layer or a group in the storage form. Any number of threads may code blocks at the same time.

/// Codes rows as one block. @param rows  [token, coefficient] in steps
LevelBlock encode_block(const TransformProducts& products, std::span<const float> rows);

/// Writes decoded rows of a block. @param first  row of the block that is the first one of `rows` [token, coefficient]
/// @throws Error kData if the block's words are no stream of these products
void decode_block(const TransformProducts& products, const LevelBlock& block, std::size_t first, std::span<float> rows);

}  // namespace kvs::inline calibrate
