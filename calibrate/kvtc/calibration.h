// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "calibrate/kvtc/bases.h"
#include "calibrate/kvtc/config.h"

namespace kvs::inline calibrate {

struct KvtcPlan {
  std::size_t bytes = 0;   // stored bytes of all layers: the budget for a document of `tokens` tokens
  std::size_t tokens = 0;  // more than the sinks, the recent tokens and a block
  KvtcTokens held = {};
};

/// Returns the bytes of the budget that are left for codes, or 0: what sinks and waiting tokens do not take.
std::size_t kvtc_code_bytes(std::span<const KvtcLayers> pools, const KvtcPlan& plan) noexcept;
/// Returns the bits a value at which codes are as large as the budget before the entropy coder, times `factor`.
double kvtc_bits(std::span<const KvtcLayers> pools, const KvtcPlan& plan, double factor = 1) noexcept;

/// The most that DEFLATE is expected to save: plans of more bits are not tried.
inline constexpr double kKvtcMaxGain = 2;

/// Chooses groups for a budget. Keys and values of every pool have the same bits a value, as in the paper.
/// Deviation: the paper's ratio is of the codes before DEFLATE. Here the bits are those at which the kept tokens of the
/// calibration's text take the budget's bytes after it.
/// @param bases  with at least kvtc_bits() of this plan
/// @throws Error kUsage if the smallest groups take more
KvtcConfig calibrate_kvtc(const KvtcBases& bases, const KvtcMoments& moments, const KvtcPlan& plan,
                          const KvtcProgress& progress);

}  // namespace kvs::inline calibrate
