#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/elite_allocation.h"
#include "eval/elite_search.h"
#include "export/elite_config.h"
#include "model/decoder.h"

namespace kvs {

/// Factorises every layer as `config` says, without fitted outputs, and runs `documents` through its cache.
/// @param search  whose sums the factors are made of;  @param tokens  that these are over
/// @param config  r, rank and how; its picks are found here
EliteTrial try_allocation(const ModelSource& source, Decoder& decoder, const EliteSearch& search, std::size_t tokens,
                          CalibrationOps& ops, EliteConfig config,
                          std::span<const std::vector<std::int32_t>> documents);

/// The trial of least perplexity, the smallest r on ties.
const EliteTrial& best_of(std::span<const EliteTrial> trials);

}  // namespace kvs
