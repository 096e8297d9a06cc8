#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/backend.h"

namespace kvs {

/// Orthonormal DCT-II, or the DFT of a real signal (bins 0 … ⌊N/2⌋).
enum class Transform { kDct, kDft };

/// Bins that a transform of `tokens` samples has: tokens for the DCT, ⌊tokens/2⌋ + 1 for the DFT.
constexpr std::size_t bins_of(Transform transform, std::size_t tokens) noexcept {
  return transform == Transform::kDct ? tokens : tokens / 2 + 1;
}

/// FAEDKV's chunks: chunk c of C is bins [⌊cB/C⌋, ⌊(c+1)B/C⌋) of B.
constexpr std::size_t first_bin_of(std::size_t chunk, std::size_t chunks, std::size_t bins) noexcept {
  return chunk * bins / chunks;
}

/// Transforms (Backend::make_spectral_ops) along the token axis of states [head, token, head_dim], channel by channel,
/// in double precision.
class SpectralOps {
 public:
  virtual ~SpectralOps() = default;

  /// power[h, b] = mean over channels of |X[b]|², X the orthonormal transform (the DFT divided by √N) of tokens
  /// [first_token, T). Written to host memory. states: [head, T, head_dim]; power: [head, bins_of(transform, T −
  /// first_token)]. Parseval: for the DCT the bins of a head sum to the mean channel's Σ x². Cost O(heads · head_dim ·
  /// T log T).
  virtual void power(BackendView<const float, 3> states, Transform transform, std::size_t first_token,
                     std::span<double> power) = 0;

  /// out[m] = inverse(gain[m] ∘ transform(x)) on tokens [first_token, last_token), the other tokens as in x.
  /// One forward transform serves all members. x: [head, T, head_dim]; gains: [member, bins] in host memory, bins of
  /// last_token − first_token samples; out: [member, head, T, head_dim]; x may be out's member 0 or any part of it.
  virtual void filter(BackendView<const float, 3> x, Transform transform, std::size_t first_token,
                      std::size_t last_token, TensorView<const double, 2> gains, BackendView<float, 4> out) = 0;

  /// spectrum[h, b] = Σ_t x[h, t] e^{−j2πt·bins[b]/samples}: some bins of the DFT of tokens, followed by zeros.
  /// x: [head, token, head_dim], token ≤ samples; spectrum: [head, bin, (real, imaginary), head_dim].
  virtual void analyze(BackendView<const float, 3> x, const BinGrid& grid, BackendView<float, 4> spectrum) = 0;
  /// The way back with all other bins 0: x[h, t] is sample t. Shapes as in analyze().
  virtual void synthesize(BackendView<const float, 4> spectrum, const BinGrid& grid, BackendView<float, 3> x) = 0;
  /// What analyze() gives of x as sample `place` alone is added to `spectrum`.
  /// x: [head, token, head_dim], of which `token` is the sample.
  virtual void add_sample(BackendView<const float, 3> x, std::size_t token, std::size_t place, const BinGrid& grid,
                          BackendView<float, 4> spectrum) = 0;

  /// kvs::dct_resample() (kernels/dct_resample.h), of host memory on every device.
  virtual void dct_resample(TensorView<const float, 2> states, std::size_t first_bin, double scale,
                            TensorView<float, 2> out) = 0;
};

/// @throws Error kInternal unless shapes [head, token, head_dim] and [head, bin, 2, head_dim] fit a grid.
void check_grid(const std::array<std::size_t, 3>& x, const std::array<std::size_t, 4>& spectrum, const BinGrid& grid);

}  // namespace kvs
