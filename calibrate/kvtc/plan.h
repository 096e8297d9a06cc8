// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/kvtc/pool.h"

namespace kvs::inline calibrate {

/// The squared errors of coding samples of components in groups, from which groups are chosen.
/// Source: Staniszewski and Łańcucki (2025), KVTC, arXiv:2511.01815, section 3.2: a dynamic program over the
/// components in order of variance gives the groups and types of least squared error under a budget of bits.
/// Deviation: groups begin at multiples of 16 components, and those of 1 come by sixteen.
class KvtcErrors {
 public:
  /// @param samples  [sample, component], component a multiple of kKvtcStep, in order of variance
  /// O(samples · components) for each size and type.
  KvtcErrors(std::span<const float> samples, std::size_t components);

  struct Plan {
    std::vector<KvtcGroup> groups;  // from the first component on; those after them are not coded
    double error = 0;               // of all samples
  };
  /// Returns the groups of least error with at most `bits` bits a token (group_bits()). With too few bits for any group
  /// there is none.
  Plan plan(std::size_t bits) const;

 private:
  static constexpr std::size_t kTypes = 3;  // after kF16

  double error(std::size_t first, std::size_t size, std::size_t type) const noexcept {
    return errors_[(first * kKvtcSizes.size() + size) * kTypes + type];
  }

  std::size_t steps_;            // sixteens of components
  std::vector<double> tails_;    // [step, and the end]: energy of the components from there on
  std::vector<double> singles_;  // [step]: sixteen groups of 1
  std::vector<double> errors_;   // [first step][size][type]
};

}  // namespace kvs::inline calibrate
