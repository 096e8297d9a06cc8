// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "caches/parameters.h"
#include "kernels/spectral_ops.h"

namespace kvs::inline calibrate {

/// How a token is added to the spectrum. kCorrected: as sample N of a grid of M samples, with equal weight for every
/// token. This is exact until the grid is full. Then the grid is rebuilt with 2M samples. kLiteral: as printed in the
/// paper, S ← e^{−j2πk/M} (S + x/M) with the M of the prefix, S being the conjugate spectrum.
enum class FaedkvUpdate { kCorrected, kLiteral };

/// FAEDKV in one layer.
struct FaedkvOptions {
  std::size_t sinks = 10, recent = 50;  // S, R: tokens at both ends of the prefix that are kept as rows
  std::size_t chunks = 22;              // C: number of chunks of the half spectrum
  std::vector<std::size_t> kept;        // chunks of keys that are kept, ascending
  std::vector<std::size_t> kept_v;      // chunks of values that are kept
  bool before_rope = false;             // transforms keys before RoPE (k_pre)
  bool age = false;  // tokens older than the R recent ones enter the spectrum; false: tokens after the prefix stay rows
  FaedkvUpdate update = FaedkvUpdate::kCorrected;
  // For the ablation; a cache supports only the DFT's half spectrum:
  Transform transform = Transform::kDft;
  bool full_spectrum = false;

  bool half_dft() const noexcept { return transform == Transform::kDft && !full_spectrum; }
};

/// Reads the options of the selected layer. @throws Error like Parameters
FaedkvOptions faedkv_options(Parameters& parameters);

}  // namespace kvs::inline calibrate
