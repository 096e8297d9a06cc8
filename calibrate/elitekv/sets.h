// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/elitekv/factor_file.h"
#include "calibrate/elitekv/plan.h"
#include "io/checkpoint.h"
#include "ranks/ranks.h"

namespace kvs::inline calibrate {

/// Computes the units of a search up to the `last` one, pass by pass. Ranks share the documents of a pass, and rank 0
/// has the sums. Other ranks receive the sums if another pass follows.
/// @param saved       state of an earlier run, on rank 0
/// @param checkpoint  of rank 0
/// @param done        called with the number of units so far
void share_search(EliteSearch& search, std::size_t last, std::optional<Checkpoint::State> saved, Ranks& ranks,
                  Checkpoint& checkpoint, const std::function<void(std::size_t)>& done);

/// Chooses sizes by the held-out documents, which are the last ones: tries the plan's candidates, then lets layers
/// trade sizes. Trades are measured on every second document before the held-out ones.
void choose_sizes(ElitePlan& plan, const ModelSource& source, Decoder& decoder, const EliteSearch& search,
                  CalibrationOps& ops, std::span<const std::vector<std::int32_t>> documents,
                  const FactorProgress& progress);

/// Sets the picks of the plan's config for the chosen sizes.
void take_picks(ElitePlan& plan, const EliteSearch& search);

}  // namespace kvs::inline calibrate
