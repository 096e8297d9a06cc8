// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/saved_sums.h"

#include "core/error.h"

namespace kvs::inline calibrate {

void restore_sums(std::span<const std::vector<double>> state, std::span<const SavedSum> sums) {
  if (state.size() != sums.size())
    throw Error(ErrorCode::kInput, "checkpoint", "found sums of another calibration, expected those of this one");
  for (std::size_t n = 0; n < state.size(); ++n) {
    const auto& [values, grows] = sums[n];
    if (!grows && state[n].size() != values->size())
      throw Error(ErrorCode::kInput, "checkpoint", "found sums of another size, expected those of this calibration");
    *values = state[n];
  }
}

}  // namespace kvs::inline calibrate
