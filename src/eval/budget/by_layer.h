#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/budget/loss_log.h"
#include "eval/budget/space.h"
#include "model/decoder.h"

namespace kvs {

/// One of BudgetSpace::candidates().
struct RankedSettings {
  std::size_t candidate = 0;
  Json settings;
};

/// Lets layers trade sizes under the space's budget: allocate_layers() by the divergence from the full cache's
/// predictions. Layers with a sliding window take no part.
/// @param ranked  best first: all layers start with the first; a layer may instead have another value of
///                BudgetGrid::by_layer, with what was best beside it
/// @param rounds    as LayerBudget
/// @return settings with a list by layer where layers differ
Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::span<const RankedSettings> ranked, std::size_t rounds,
                       std::span<const std::vector<std::int32_t>> documents, LossLog& log);

/// The joint losses that it measures at most, but for those of trades made together.
std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds) noexcept;

}  // namespace kvs
