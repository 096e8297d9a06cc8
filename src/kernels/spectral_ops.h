// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/attention_ops.h"

namespace kvs::inline kernels {

/// Orthonormal DCT-II, or the DFT of a real signal (bins 0 … ⌊N/2⌋).
enum class Transform { kDct, kDft };

/// Returns the number of bins of a transform of `tokens` samples: tokens for the DCT, ⌊tokens/2⌋ + 1 for the DFT.
constexpr std::size_t bins_of(Transform transform, std::size_t tokens) noexcept {
  return transform == Transform::kDct ? tokens : tokens / 2 + 1;
}

/// Returns the first bin of a FAEDKV chunk: chunk c of C is bins [⌊cB/C⌋, ⌊(c+1)B/C⌋) of B.
constexpr std::size_t first_bin_of(std::size_t chunk, std::size_t chunks, std::size_t bins) noexcept {
  return chunk * bins / chunks;
}

/// Some bins of the DFT of a real signal with `samples` samples. Each bin also represents its mirror image.
struct BinGrid {
  BackendView<const std::uint32_t, 1> bins;  // at most samples / 2
  std::size_t samples = 0;
};

/// Keys or values as some bins of their spectrum along the token axis, per channel.
struct BinnedStates {
  BackendView<const float, 4> sums;  // [kv_head, bin, (real, imaginary), head_dim]: Σ_n x[n] e^{−j2πbn/samples}
  BinGrid grid = {};

  std::size_t bins() const noexcept { return grid.bins.size(); }
};

/// Keys and values of earlier tokens. Each has its own bins; both have the same number of samples.
struct KeySpectrum {
  BinnedStates k, v;
  std::size_t tokens = 0;  // samples 0 … tokens − 1 are read

  std::size_t samples() const noexcept { return k.grid.samples; }
};

/// Transforms along the token axis of states [head, token, head_dim], per channel, in double precision. Made by
/// SpectrumOps::make_spectral_ops.
class SpectralOps {
 public:
  virtual ~SpectralOps() = default;

  /// power[h, b] = mean over channels of |X[b]|², where X is the orthonormal transform (the DFT divided by √N) of
  /// tokens [first_token, T). Written to host memory. states: [head, T, head_dim]; power: [head, bins_of(transform, T −
  /// first_token)]. Parseval: for the DCT, the bins of a head sum to Σ x², averaged over channels. Cost O(heads ·
  /// head_dim · T log T).
  virtual void power(BackendView<const float, 3> states, Transform transform, std::size_t first_token,
                     std::span<double> power) = 0;

  /// out[m] = inverse(gain[m] ∘ transform(x)) for tokens [first_token, last_token); other tokens are copied from x. One
  /// forward transform serves all members. x: [head, T, head_dim]; gains: [member, bins] in host memory, with the bins
  /// of last_token − first_token samples; out: [member, head, T, head_dim]. The input may be member 0 of out or any
  /// part of it.
  virtual void filter(BackendView<const float, 3> x, Transform transform, std::size_t first_token,
                      std::size_t last_token, TensorView<const double, 2> gains, BackendView<float, 4> out) = 0;

  /// spectrum[h, b] = Σ_t x[h, t] e^{−j2πt·bins[b]/samples}: some bins of the DFT of the tokens, padded with zeros.
  /// x: [head, token, head_dim], token ≤ samples; spectrum: [head, bin, (real, imaginary), head_dim].
  virtual void analyze(BackendView<const float, 3> x, const BinGrid& grid, BackendView<float, 4> spectrum) = 0;
  /// The inverse of analyze(), with all other bins 0: x[h, t] is sample t. Shapes as in analyze().
  virtual void synthesize(BackendView<const float, 4> spectrum, const BinGrid& grid, BackendView<float, 3> x) = 0;
  /// Adds to `spectrum` what analyze() would return if token `token` of x were sample `place` and all other samples
  /// were 0. x: [head, token, head_dim].
  virtual void add_sample(BackendView<const float, 3> x, std::size_t token, std::size_t place, const BinGrid& grid,
                          BackendView<float, 4> spectrum) = 0;

  /// Calls kvs::dct_resample() (kernels/dct_resample.h). Uses host memory on every device.
  virtual void dct_resample(TensorView<const float, 2> states, std::size_t first_bin, double scale,
                            TensorView<float, 2> out) = 0;
};

/// Spectra of states, and attention over them.
class SpectrumOps {
 public:
  virtual ~SpectrumOps() = default;

  /// Makes the transforms of states in this backend's memory.
  virtual std::unique_ptr<SpectralOps> make_spectral_ops() = 0;
  /// attention() over the tokens of `spectrum`, the past and the tokens themselves, in this order.
  /// A spectrum is read without being transformed back. Its scores are one inverse transform of Σ_d q_d K_d[bin]; its
  /// part of the output is Σ_bin V[bin] · (transform of the weights). Cost O(bins · head_dim + M log M) per query with
  /// M samples. A spectrum needs one member, no window and few tokens: (H / G) · tokens ≤ kMaxQueryRows.
  virtual void spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, Operand out) = 0;
};

/// @throws Error kInternal unless the shapes of spectrum_attention()'s operands match.
void check_spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, const Operand& out);

/// @throws Error kInternal unless shapes [head, token, head_dim] and [head, bin, 2, head_dim] match the grid.
void check_grid(const std::array<std::size_t, 3>& x, const std::array<std::size_t, 4>& spectrum, const BinGrid& grid);

}  // namespace kvs::inline kernels
