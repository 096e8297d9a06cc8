#pragma once

#include <complex>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace kvs {

/// Sign of the exponent: kForward is e^{−j2πkn/N}. Neither direction scales.
enum class FftDirection { kForward, kBackward };

/// FFTW's planner keeps global state, so planning and destroying take turns in the whole process.
std::mutex& fft_planner_mutex();

/// Memory aligned as FFTW's plans expect it.
class FftBuffer {
 public:
  /// @throws Error kEnvironment if there is no memory.
  explicit FftBuffer(std::size_t size);
  std::complex<double>* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Free {
    void operator()(std::complex<double>* data) const noexcept;
  };
  std::unique_ptr<std::complex<double>, Free> data_;
  std::size_t size_;
};

/// One complex transform of a fixed length in double precision, contiguous and out of place.
class FftPlan {
 public:
  /// @throws Error kUnsupported above 2³¹ − 1 samples; kUsage for none.
  FftPlan(std::size_t samples, FftDirection direction);

  /// `to` and `from` start FftBuffers or lie a multiple of 64 bytes behind their start, and do not overlap.
  /// Thread-safe.
  void run(std::complex<double>* from, std::complex<double>* to) const noexcept;

 private:
  std::shared_ptr<void> plan_;
};

/// Plans by length and direction, made once. Thread-safe; a plan lives as long as this object.
///
/// Plans are estimated and not measured: a measured plan depends on the timing of the moment, and another plan rounds
/// differently, which would break bit-identical resumes. For contiguous powers of two the estimate is also as fast.
class FftPlans {
 public:
  const FftPlan& get(std::size_t samples, FftDirection direction);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::size_t, FftDirection>, FftPlan> plans_;
};

}  // namespace kvs
