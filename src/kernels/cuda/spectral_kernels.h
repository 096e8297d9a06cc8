// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuComplex.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/context.h"
#include "kernels/spectral_ops.h"

namespace kvs::cuda {

/// States [head, token, head_dim] and the segment [first, first + samples) to transform. Two adjacent real channels
/// form one complex signal. Signals are [sample, head, pair].
struct Segment {
  std::size_t heads = 0, tokens = 0, head_dim = 0, first = 0, samples = 0;
  Transform transform = Transform::kDct;

  std::size_t pairs() const noexcept { return (head_dim + 1) / 2; }
  std::size_t signals() const noexcept { return heads * pairs(); }
};

/// Fills signals from the segment. For the DCT, even samples come first in ascending order, then odd samples in
/// descending order, so that an N-point FFT yields the DCT (Makhoul, IEEE Trans. ASSP 28(1), 1980, 27–34).
void load_signals(const Context& context, const Segment& segment, const float* states, cuDoubleComplex* signals);

/// power[head, bin] = mean orthonormal power of a head's channels, from the unscaled FFT. The order of sums is fixed.
void reduce_power(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, double* power);

/// out = spectrum with coefficient k of both channels times gain[k]. gain: [bins_of(transform, samples)], device
/// memory.
void apply_gain(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, const double* gain,
                cuDoubleComplex* out);

/// to = signals / samples in the segment and `from` elsewhere. from and to: [head, token, head_dim], may be equal.
void store_signals(const Context& context, const Segment& segment, const cuDoubleComplex* signals, const float* from,
                   float* to);

/// A spectrum [head, bin, (real, imaginary), head_dim] and its grid, in device memory.
struct Bins {
  const std::uint32_t* bins = nullptr;
  std::size_t count = 0, samples = 0;
};

/// Extracts some bins of both channels of each signal from the transform of signals of bins.samples samples.
void pick_bins(const Context& context, const Segment& segment, const Bins& bins, const cuDoubleComplex* transform,
               float* spectrum);
/// Inverse of pick_bins(), including mirror images. The transform's other bins are unchanged.
void place_bins(const Context& context, const Segment& segment, const Bins& bins, const float* spectrum,
                cuDoubleComplex* transform);
/// spectrum += x[head, token, :] e^{−j2π · bin · place / samples}. x: [head, token, head_dim] as in `segment`.
void add_sample(const Context& context, const Segment& segment, const Bins& bins, const float* x, std::size_t token,
                std::size_t place, float* spectrum);

}  // namespace kvs::cuda
