#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/transform/basis.h"
#include "model/decoder.h"
#include "policy/transform.h"

namespace kvs {

/// What coding the keys, or the values, of one layer alone costs in KL divergence from the full cache's predictions,
/// nats a token, for each of `layers`: 2 passes a layer and document from that layer on.
/// @param done  called before each layer with its position
std::vector<TransformScales> coding_losses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                           const std::vector<TransformLayer>& layers,
                                           const std::function<void(std::size_t)>& done);

}  // namespace kvs
