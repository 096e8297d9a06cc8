// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns the FLOPs of a calibration on `documents` documents of `tokens` tokens: passes, products and
/// decompositions of covariances.
double kvtc_flops(const ModelConfig& model, std::size_t documents, std::size_t tokens);
/// Returns the peak memory in bytes in addition to the model and a pass: sums and decompositions.
double kvtc_memory(const ModelConfig& model);

}  // namespace kvs::inline calibrate
