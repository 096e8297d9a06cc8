// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder.h"

namespace kvs::inline exporting {

/// Returns the inputs of the first layer's projections, [token, d_model] in f32: kvs_codec_inputs. Cost: the first
/// layer's blocks.
std::vector<float> first_inputs(Decoder& decoder, std::span<const std::int32_t> tokens);

}  // namespace kvs::inline exporting
