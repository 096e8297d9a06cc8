// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>

namespace kvs::inline kernels {

/// Transforms of one real signal of fixed length in single precision, in place. A buffer holds `samples` reals, or
/// their bins 0 … ⌊samples/2⌋ as pairs (real, imaginary).
class RealFft {
 public:
  /// Returns the number of reals that a buffer must hold.
  static constexpr std::size_t buffer_size(std::size_t samples) noexcept { return 2 * (samples / 2 + 1); }

  /// @throws Error kUnsupported above 2³¹ − 1 samples; kUsage for none.
  explicit RealFft(std::size_t samples);

  /// X[b] = Σ_n x[n] e^{−j2πbn/samples}. Both directions are thread-safe and end the program without memory for a copy.
  void forward(float* buffer) const noexcept;
  /// x[n] = Σ_b X[b] e^{j2πbn/samples} over all bins, including mirror images, not scaled. Ignores the imaginary parts
  /// of bins 0 and samples/2.
  void backward(float* buffer) const noexcept;

 private:
  std::size_t samples_;
  std::shared_ptr<const void> plan_;
};

/// Transforms by length, each planned once. Not thread-safe.
class RealFfts {
 public:
  const RealFft& get(std::size_t samples) { return transforms_.try_emplace(samples, samples).first->second; }

 private:
  std::map<std::size_t, RealFft> transforms_;
};

}  // namespace kvs::inline kernels
