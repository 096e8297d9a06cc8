// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/elitekv/config.h"
#include "core/dtype.h"
#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns the peak bytes of an EliteKV calibration in addition to the model and a pass over a document: the sums of a
/// search with p = 2 over all layers (per query head a Gram matrix of chunks, or with attention of AttentionPairs'
/// features; for whitening the second moments of each layer's input), and the larger of the memory of factorising one
/// layer and of fitting the outputs of outputs_at_once() layers.
/// @param config   layers and requests; picks are not read
/// @param compute  the backend's type
/// @param tried    allocations are tried: adds the caches of all layers
double elite_memory(const ModelConfig& model, const EliteConfig& config, DType compute, bool tried = false);

/// Returns the bytes of an EliteLayer of that size.
double elite_layer_bytes(const ModelConfig& model, const EliteConfig& config, EliteAllocation size);

}  // namespace kvs::inline calibrate
