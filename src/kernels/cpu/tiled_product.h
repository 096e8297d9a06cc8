// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/weight.h"

namespace kvs::cpu {

/// ForwardOps::make_weight() for products of `engine`.
std::unique_ptr<PackedWeight> pack_weight(ProductEngine& engine, const WeightSource& source);

/// ForwardOps::linear() for rows in the engine's type: out = x Wᵀ (+ bias), or out += ….
/// @param x        [rows, weight.columns()]
/// @param weight   packed by an engine of the same kind
/// @param scratch  [thread]: grows as needed; the product has this number of threads
void multiply_tiled(ProductEngine& engine, const void* x, std::size_t rows, const PackedWeight& weight,
                    BackendView<float, 2> out, bool accumulate, std::span<AlignedBuffer> scratch);

}  // namespace kvs::cpu
