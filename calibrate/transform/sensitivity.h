#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/transform/basis.h"
#include "calibrate/transform/cache.h"
#include "model/decoder.h"

namespace kvs {

/// What coding the keys, or the values, of one layer alone costs in KL divergence from the full cache's predictions,
/// nats a token, for each of `layers`: 2 passes a layer and document from that layer on.
/// @param losses  of the first of `layers`, known before
/// @param done    called before each of the others, and at the end, with what is known by then
std::vector<TransformScales> coding_losses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                           const std::vector<TransformLayer>& layers,
                                           std::vector<TransformScales> losses,
                                           const std::function<void(std::span<const TransformScales>)>& done);

}  // namespace kvs
