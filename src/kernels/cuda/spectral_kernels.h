#pragma once

#include <cuComplex.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/context.h"
#include "kernels/spectral_ops.h"

namespace kvs::cuda {

/// States [head, token, head_dim] and the segment [first, first + samples) that is transformed. Two neighbouring real
/// channels travel as one complex signal; signals are [sample, head, pair].
struct Segment {
  std::size_t heads = 0, tokens = 0, head_dim = 0, first = 0, samples = 0;
  Transform transform = Transform::kDct;

  std::size_t pairs() const noexcept { return (head_dim + 1) / 2; }
  std::size_t signals() const noexcept { return heads * pairs(); }
};

/// Fills signals from the segment; for the DCT in the order that makes an N-point FFT yield it: even samples forwards,
/// then odd ones backwards (Makhoul, IEEE Trans. ASSP 28(1), 1980, 27–34).
void load_signals(const Context& context, const Segment& segment, const float* states, cuDoubleComplex* signals);

/// power[head, bin] = mean orthonormal power of a head's channels, from the unscaled FFT of signals. Sums in a fixed
/// order.
void reduce_power(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, double* power);

/// out = spectrum with coefficient k of both channels times gain[k]; gain: [bins_of(transform, samples)], device
/// memory.
void apply_gain(const Context& context, const Segment& segment, const cuDoubleComplex* spectrum, const double* gain,
                cuDoubleComplex* out);

/// to = signals / samples in the segment and `from` elsewhere; from and to: [head, token, head_dim], may be the same.
void store_signals(const Context& context, const Segment& segment, const cuDoubleComplex* signals, const float* from,
                   float* to);

/// A spectrum [head, bin, (real, imaginary), head_dim] and its grid, in device memory.
struct Bins {
  const std::uint32_t* bins = nullptr;
  std::size_t count = 0, samples = 0;
};

/// Some bins of both channels of each signal, from the transform of signals of bins.samples samples.
void pick_bins(const Context& context, const Segment& segment, const Bins& bins, const cuDoubleComplex* transform,
               float* spectrum);
/// The way back, mirror images included; the transform's other bins stay as they are.
void place_bins(const Context& context, const Segment& segment, const Bins& bins, const float* spectrum,
                cuDoubleComplex* transform);
/// spectrum += x[head, token, :] e^{−j2π · bin · place / samples}. x: [head, token, head_dim] as `segment` says.
void add_sample(const Context& context, const Segment& segment, const Bins& bins, const float* x, std::size_t token,
                std::size_t place, float* spectrum);

}  // namespace kvs::cuda
