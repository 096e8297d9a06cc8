// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/budget/loss_log.h"
#include "calibrate/budget/space.h"
#include "model/decoder.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// Lets layers trade sizes under the space's budget: runs allocate_layers() on the divergence from the full cache's
/// predictions. Layers with a sliding window do not take part, except in types that an engine offers. An engine whose
/// first and last N layers have other types than the middle gets the best of a few N.
/// @param candidate  index in BudgetSpace::candidates(): the start of all layers
/// @param rounds     as in LayerBudget
/// @param documents  documents for the measurements, the first of `states`
/// @param states     their spectra propose settings to layers (BudgetGrid::proposal); nullptr: no proposals
/// @return settings with a list by layer where layers differ
Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::size_t candidate, std::size_t rounds,
                       std::span<const std::vector<std::int32_t>> documents, StateSource* states, LossLog& log);

/// Returns the maximum number of joint losses measured, not counting those of trades made together.
std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds, TypesByLayer types);

}  // namespace kvs::inline calibrate
