// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzers/model_gain.h"
#include "results/coding_gain.h"

namespace kvs::inline analyzers {

/// Bits per value from which a family can pay, and below which it cannot. At 2 to 4 bits a value, 0.25 bit is 6 to 12 %
/// of the bytes, and 0.1 less than what two codecs of the same kind differ by. Ours.
inline constexpr double kPayingBits = 0.25, kIdleBits = 0.1;
/// Thresholds for the share of components without bits, which low rank drops.
inline constexpr double kPayingShare = 0.25, kIdleShare = 0.1;

/// Without words. Empty where neither k_pre nor v was measured.
std::vector<FamilyFinding> family_findings(const ModelGains& gains);

}  // namespace kvs::inline analyzers
