// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/faedkv/result.h"
#include "draw/chart.h"

namespace kvs::inline calibrate {

/// Returns the figures `_ablation`, `_filtering` and, with a sweep, `_chunks`.
/// @param documents  documents of the calibration; the figure shows states of the first before and after filtering
std::vector<draw::Figure> faedkv_figures(const FaedkvPlan& plan, const FaedkvResult& found,
                                         std::span<const std::vector<std::int32_t>> documents, Decoder& decoder,
                                         SpectralOps& ops);

}  // namespace kvs::inline calibrate
