#pragma once

#include "calibrate/elitekv/config.h"
#include "core/dtype.h"
#include "model/config.h"

namespace kvs {

/// Bytes that an EliteKV calibration holds at its peak beside the model and a pass over a document: the sums of a
/// search with p = 2 over all layers (per query head a Gram matrix of chunks, or by attention of AttentionPairs'
/// features; for whitening the second moments of each layer's input) and the larger of what factorises one layer and
/// what fits the outputs of outputs_at_once() layers.
/// @param config   layers and what is asked for; picks are not read
/// @param compute  the backend's type
/// @param tried    whether allocations are tried: the caches of all layers at work
double elite_memory(const ModelConfig& model, const EliteConfig& config, DType compute, bool tried = false);

/// Of an EliteLayer of that size.
double elite_layer_bytes(const ModelConfig& model, const EliteConfig& config, EliteAllocation size);

}  // namespace kvs
