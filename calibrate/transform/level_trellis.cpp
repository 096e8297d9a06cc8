// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/level_trellis.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace kvs::inline calibrate {

std::uint32_t escape_bits(std::uint32_t excess) noexcept {
  return 2 * static_cast<std::uint32_t>(std::bit_width(excess + 1)) - 1;
}

LevelTrellis::LevelTrellis(const EntropyModel& model) : model_(&model), bit_costs_(model.frequencies.size()) {
  for (std::size_t n = 0; n < bit_costs_.size(); ++n) {
    const double bits = kProbabilityBits - std::log2(model.frequencies[n]) + (n % kLevels > 0 ? 1 : 0);
    bit_costs_[n] = kBitCost * static_cast<float>(bits);
  }
}

float LevelTrellis::cost_of(float size, std::size_t scale, std::size_t context, std::uint32_t quantiser,
                            std::uint32_t level) const noexcept {
  const std::uint32_t held = std::min<std::uint32_t>(level, kLevels - 1);
  const float error =
      size - model_->values[(scale * kQuantisers + quantiser) * kLevels + held] - 2 * static_cast<float>(level - held);
  float cost = error * error + bit_costs_[(context + quantiser) * kLevels + held];
  if (held == kLevels - 1) cost += kBitCost * static_cast<float>(escape_bits(level - held));
  return cost;
}

LevelTrellis::Branch LevelTrellis::branch_of(float size, std::size_t scale, std::size_t context) const noexcept {
  Branch branch;
  for (std::uint32_t quantiser = 0; quantiser < kQuantisers; ++quantiser) {
    const auto near = static_cast<std::uint32_t>((size + static_cast<float>(quantiser)) / 2);
    const std::uint32_t lowest = near > 0 ? near - 1 : 0;
    for (std::uint32_t parity = 0; parity < 2; ++parity) branch.cost[quantiser][parity] = kFar;
    const auto consider = [&](std::uint32_t level) {
      const float cost = cost_of(size, scale, context, quantiser, level);
      if (!(cost < branch.cost[quantiser][level % 2])) return;
      branch.cost[quantiser][level % 2] = cost;
      branch.magnitude[quantiser][level % 2] = magnitude_of(quantiser, level);
    };
    if (lowest > 0) consider(0);
    for (std::uint32_t level = lowest; level < lowest + 4; ++level) consider(level);
  }
  return branch;
}

void LevelTrellis::choose(std::span<const float> row, std::span<const std::uint8_t> scales, TokenContext context,
                          Scratch& scratch, std::span<std::int32_t> magnitudes) const {
  const std::size_t count = row.size();
  auto& [branches, from] = scratch;
  branches.resize(count);
  from.resize(count * kTrellisStates);
  std::array<float, kTrellisStates> costs{};
  costs.fill(kFar);
  costs[0] = 0;
  for (std::size_t n = 0; n < count; ++n) {
    constexpr auto kMost = static_cast<float>(kMaxMagnitude - 4);
    const float size = std::abs(row[n]) < kMost ? std::abs(row[n]) : kMost;  // NaN, too
    branches[n] = branch_of(size, scales[n], context.of(n, scales[n]));
    std::array<float, kTrellisStates> next{};
    next.fill(std::numeric_limits<float>::infinity());
    for (std::uint32_t state = 0; state < kTrellisStates; ++state)
      for (std::uint32_t parity = 0; parity < 2; ++parity) {
        const float cost = costs[state] + branches[n].cost[state % 2][parity];
        const std::uint32_t to = next_state(state, parity);
        if (!(cost < next[to])) continue;
        next[to] = cost;
        from[n * kTrellisStates + to] = static_cast<std::uint8_t>(2 * state + parity);
      }
    costs = next;
    constexpr float kDeadZone = 1.2F;  // smaller ones mostly become 0
    context.add(scales[n], size < kDeadZone ? 0 : static_cast<std::int32_t>(std::lround(size)));
  }
  auto state = static_cast<std::size_t>(std::ranges::min_element(costs) - costs.begin());
  for (std::size_t n = count; n-- > 0;) {
    const std::uint8_t step = from[n * kTrellisStates + state];
    state = step / 2;
    const std::int32_t magnitude = branches[n].magnitude[state % 2][step % 2];
    magnitudes[n] = row[n] < 0 ? -magnitude : magnitude;
  }
}

std::vector<std::int32_t> LevelTrellis::choose_block(std::span<const float> rows,
                                                     std::span<const std::uint8_t> scales) const {
  const std::size_t count = scales.size();
  std::vector<std::int32_t> all(rows.size());
  Scratch scratch;
  for (std::size_t at = 0; at < rows.size(); at += count)
    choose(rows.subspan(at, count), scales, {*model_, all, count, at / count}, scratch,
           std::span(all).subspan(at, count));
  return all;
}

}  // namespace kvs::inline calibrate
