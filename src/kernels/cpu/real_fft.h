#pragma once

#include <cstddef>
#include <map>
#include <memory>

namespace kvs {

/// Transforms of one real signal of a fixed length in single precision, in place. A buffer holds `samples` reals or
/// their bins 0 … ⌊samples/2⌋ as pairs (real, imaginary), and starts on a cache line.
class RealFft {
 public:
  /// Reals that a buffer must have room for.
  static constexpr std::size_t buffer_size(std::size_t samples) noexcept { return 2 * (samples / 2 + 1); }

  /// @throws Error kUnsupported above 2³¹ − 1 samples
  explicit RealFft(std::size_t samples);

  /// X[b] = Σ_n x[n] e^{−j2πbn/samples}. Both are thread-safe.
  void forward(float* buffer) const noexcept;
  /// x[n] = Σ_b X[b] e^{j2πbn/samples} over all bins, mirror images included; not scaled.
  void backward(float* buffer) const noexcept;

 private:
  std::shared_ptr<void> forward_, backward_;
};

/// Transforms by length, planned once. Plans are estimated and not measured, as those of FftPlans. Not thread-safe.
class RealFfts {
 public:
  const RealFft& get(std::size_t samples) { return transforms_.try_emplace(samples, samples).first->second; }

 private:
  std::map<std::size_t, RealFft> transforms_;
};

}  // namespace kvs
