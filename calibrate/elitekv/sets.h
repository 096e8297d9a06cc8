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

namespace kvs {

/// Makes the units of a search up to the `last` one, pass by pass: ranks share a pass's documents, and rank 0 has the
/// sums. The others get them for as long as passes follow.
/// @param saved       what a run before has saved, on rank 0
/// @param checkpoint  of rank 0
/// @param done        is told the units so far
void share_search(EliteSearch& search, std::size_t last, std::optional<Checkpoint::State> saved, Ranks& ranks,
                  Checkpoint& checkpoint, const std::function<void(std::size_t)>& done);

/// Chooses sizes for what the search has seen, by the documents that are held out, the last ones: tries the plan's
/// candidates, then lets layers trade, which is measured on every second document before those.
void choose_sizes(ElitePlan& plan, const ModelSource& source, Decoder& decoder, const EliteSearch& search,
                  CalibrationOps& ops, std::span<const std::vector<std::int32_t>> documents,
                  const FactorProgress& progress);

/// The chunks of the sizes that were chosen.
void take_picks(ElitePlan& plan, const EliteSearch& search);

}  // namespace kvs
