// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/transform/basis.h"
#include "calibrate/transform/cache.h"
#include "model/decoder.h"

namespace kvs::inline calibrate {

/// Measures the cost of coding only the keys, or only the values, of one layer as KL divergence from the full cache's
/// predictions, in nats per token, for each of `layers`: 2 passes per layer and document from that layer on.
/// @param losses  known losses of the first of `layers`
/// @param done    called before each of the others, and at the end, with the losses known so far
std::vector<TransformScales> coding_losses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                           const std::vector<TransformLayer>& layers,
                                           std::vector<TransformScales> losses,
                                           const std::function<void(std::span<const TransformScales>)>& done);

}  // namespace kvs::inline calibrate
