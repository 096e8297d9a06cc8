// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "caches/slot_cache.h"

namespace kvs::inline calibrate {

/// FreqKV in one layer.
struct FreqkvOptions {
  SlotOptions slots = {};
  bool high_band = false;  // keeps the highest coefficients instead of the lowest
  bool rescale = true;     // multiplies by √(L/N), which keeps a constant signal constant
  std::size_t recent = 0;  // number of last slots that move up unchanged; part of L
  bool iterate = true;  // compresses the cache's content; false: the whole history each time, which is then stored too
};

/// Reads the options of the selected layer. @throws Error like Parameters
FreqkvOptions freqkv_options(Parameters& parameters);

}  // namespace kvs::inline calibrate
