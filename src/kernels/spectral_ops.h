#pragma once

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

/// Transforms along the token axis of states [head, token, head_dim], channel by channel, in double precision.
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
};

std::unique_ptr<SpectralOps> make_spectral_ops(Backend& backend);

}  // namespace kvs
