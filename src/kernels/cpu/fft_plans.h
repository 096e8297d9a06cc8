// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/cpu/aligned.h"

namespace kvs::inline kernels {

/// Sign of the exponent: kForward is e^{−j2πkn/N}. Neither direction scales.
enum class FftDirection { kForward, kBackward };

/// Number of signals in one transform, each in its own lane.
inline constexpr std::size_t kFftSignals = 4;
using FftLanes = double __attribute__((vector_size(8 * kFftSignals)));

/// One complex sample (or bin) of each signal.
struct FftSample {
  FftLanes real, imaginary;
};

/// Samples in aligned memory, not initialised.
class FftBuffer {
 public:
  /// @throws Error kEnvironment if memory runs out.
  explicit FftBuffer(std::size_t size) { memory_.reserve(size * sizeof(FftSample)); }
  FftSample* data() const noexcept { return static_cast<FftSample*>(memory_.data()); }

 private:
  cpu::AlignedBuffer memory_;
};

/// Complex transforms of a fixed length in double precision, of kFftSignals signals at once. Uses PocketFFT. A signal's
/// result is the same bits in every lane, whatever the other lanes hold. Lengths with large prime factors use
/// Bluestein's algorithm, so every length costs O(N log N).
class FftPlan {
 public:
  /// @throws Error kUnsupported above 2³¹ − 1 samples; kUsage for none.
  explicit FftPlan(std::size_t samples);

  /// Transforms in place. Thread-safe. Ends the program if there is no memory for a copy of the signals.
  void run(FftSample* signals, FftDirection direction) const noexcept;

 private:
  std::shared_ptr<const void> plan_;
};

/// Plans by length, each made once. Thread-safe. A plan lives as long as this object.
class FftPlans {
 public:
  const FftPlan& get(std::size_t samples);

 private:
  std::mutex mutex_;
  std::map<std::size_t, FftPlan> plans_;
};

}  // namespace kvs::inline kernels
