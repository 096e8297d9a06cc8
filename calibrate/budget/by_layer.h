#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/budget/loss_log.h"
#include "calibrate/budget/space.h"
#include "model/decoder.h"
#include "states/state_source.h"

namespace kvs {

/// Lets layers trade sizes under the space's budget: allocate_layers() by the divergence from the full cache's
/// predictions. Layers with a sliding window take no part.
/// @param candidate  of BudgetSpace::candidates(), with which all layers start
/// @param rounds     as LayerBudget
/// @param documents  that it is measured on, the first of `states`
/// @param states     whose spectra propose settings to layers (BudgetGrid::proposal); nullptr: nothing is proposed
/// @return settings with a list by layer where layers differ
Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::size_t candidate, std::size_t rounds,
                       std::span<const std::vector<std::int32_t>> documents, StateSource* states, LossLog& log);

/// The joint losses that it measures at most, but for those of trades made together.
std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds) noexcept;

}  // namespace kvs
