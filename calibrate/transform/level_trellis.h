// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/transform/entropy_model.h"

namespace kvs::inline calibrate {

/// Chooses the levels of rows of coefficients: those of least squared error plus kBitCost for each bit, over the paths
/// of the trellis (Viterbi). The ratio contexts are those of coefficients rounded one by one. O(states · coefficients).
class LevelTrellis {
 public:
  explicit LevelTrellis(const EntropyModel& model);

  /// Squared steps that a bit may cost. At high rates a bit reduces the mean error of quantisers with spacing 2 from
  /// 0.23 squared steps to a quarter of this: a slope of 0.32; a higher cost prefers zeros at low rates.
  static constexpr float kBitCost = 0.36F, kFar = 1e30F;

  /// Chooses the levels of a block of rows, one after the other. Any number of threads may call it at the same time.
  /// @param rows    [token, coefficient] in steps
  /// @param scales  [coefficient]: scale classes
  /// @return the signed magnitudes, [token, coefficient]
  std::vector<std::int32_t> choose_block(std::span<const float> rows, std::span<const std::uint8_t> scales) const;

 private:
  /// The cheapest level of each parity in each quantiser.
  struct Branch {
    float cost[kQuantisers][2];
    std::int32_t magnitude[kQuantisers][2];
  };
  /// Of one row.
  struct Scratch {
    std::vector<Branch> branches;
    std::vector<std::uint8_t> from;  // [coefficient, state]: previous state · 2 + parity
  };
  /// @param context     of the row's first coefficient
  /// @param magnitudes  receives those of the row
  void choose(std::span<const float> row, std::span<const std::uint8_t> scales, TokenContext context, Scratch& scratch,
              std::span<std::int32_t> magnitudes) const;
  Branch branch_of(float size, std::size_t scale, std::size_t context) const noexcept;
  float cost_of(float size, std::size_t scale, std::size_t context, std::uint32_t quantiser,
                std::uint32_t level) const noexcept;

  const EntropyModel* model_;
  std::vector<float> bit_costs_;  // [context, level]: with the sign, weighted
};

/// Returns the bits of an escaped level beyond the last one with a probability: an Elias gamma code.
std::uint32_t escape_bits(std::uint32_t excess) noexcept;

}  // namespace kvs::inline calibrate
