// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/fft_plans.h"
#include "kernels/cpu/real_fft.h"

namespace kvs {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> random_signal(std::size_t samples, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<Complex> signal(samples);
  for (Complex& sample : signal) sample = {normal(generator), normal(generator)};
  return signal;
}

/// Σ_n x[n] e^{sign·j2πkn/N} by its definition.
std::vector<Complex> naive_transform(const std::vector<Complex>& x, double sign) {
  const std::size_t samples = x.size();
  std::vector<Complex> bins(samples);
  for (std::size_t k = 0; k < samples; ++k) {
    for (std::size_t n = 0; n < samples; ++n)
      bins[k] += x[n] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k * n % samples) /
                                            static_cast<double>(samples));
  }
  return bins;
}

double distance(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::norm(a[i] - b[i]);
    size += std::norm(b[i]);
  }
  return std::sqrt(difference / size);
}

class FftOfLength : public testing::TestWithParam<std::size_t> {};
// Powers of two, products of small primes, primes below and above the limit of Bluestein's algorithm, and twice a
// prime.
INSTANTIATE_TEST_SUITE_P(Lengths, FftOfLength, testing::Values(1, 2, 3, 4, 5, 7, 47, 64, 509, 1018, 1020, 1021, 1024));

TEST_P(FftOfLength, GivesEachSignalItsTransformInBothDirections) {
  const std::size_t samples = GetParam();
  FftBuffer buffer(samples);
  for (const FftDirection direction : {FftDirection::kForward, FftDirection::kBackward}) {
    std::vector<std::vector<Complex>> signals;
    for (std::size_t lane = 0; lane < kFftSignals; ++lane) {
      signals.push_back(random_signal(samples, static_cast<unsigned>(lane)));
      for (std::size_t n = 0; n < samples; ++n) {
        buffer.data()[n].real[lane] = signals[lane][n].real();
        buffer.data()[n].imaginary[lane] = signals[lane][n].imag();
      }
    }
    FftPlan(samples).run(buffer.data(), direction);
    for (std::size_t lane = 0; lane < kFftSignals; ++lane) {
      std::vector<Complex> bins(samples);
      for (std::size_t k = 0; k < samples; ++k)
        bins[k] = {buffer.data()[k].real[lane], buffer.data()[k].imaginary[lane]};
      // The naive sum of N terms is off by about √N · 1.1e-16.
      EXPECT_LT(distance(bins, naive_transform(signals[lane], direction == FftDirection::kForward ? -1 : 1)), 2e-14);
    }
  }
}

TEST_P(FftOfLength, GivesASignalTheSameBitsInEveryLane) {
  const std::size_t samples = GetParam();
  const std::vector<Complex> signal = random_signal(samples, 7);
  FftBuffer buffer(samples);
  for (std::size_t n = 0; n < samples; ++n)
    buffer.data()[n] = {FftLanes{} + signal[n].real(), FftLanes{} + signal[n].imag()};
  FftPlan(samples).run(buffer.data(), FftDirection::kForward);
  for (std::size_t k = 0; k < samples; ++k) {
    for (std::size_t lane = 1; lane < kFftSignals; ++lane) {
      ASSERT_EQ(buffer.data()[k].real[lane], buffer.data()[k].real[0]);
      ASSERT_EQ(buffer.data()[k].imaginary[lane], buffer.data()[k].imaginary[0]);
    }
  }
}

TEST_P(FftOfLength, GivesTheBinsOfARealSignalAsPairsAndTakesThemBack) {
  const std::size_t samples = GetParam();
  std::vector<Complex> signal = random_signal(samples, 3);
  std::vector<float> buffer(RealFft::buffer_size(samples));
  for (std::size_t n = 0; n < samples; ++n) {
    buffer[n] = static_cast<float>(signal[n].real());
    signal[n] = buffer[n];
  }
  const RealFft transform(samples);
  transform.forward(buffer.data());
  std::vector<Complex> bins, expected = naive_transform(signal, -1);
  for (std::size_t k = 0; k <= samples / 2; ++k) bins.emplace_back(buffer[2 * k], buffer[2 * k + 1]);
  expected.resize(bins.size());
  EXPECT_LT(distance(bins, expected), 1e-6);  // of floats, 6e-8 each; Bluestein's algorithm makes two transforms
  EXPECT_EQ(buffer[1], 0);
  EXPECT_EQ(samples % 2 == 0 ? buffer[samples + 1] : 0, 0);

  buffer[1] = 5;  // has no part in a real signal
  if (samples % 2 == 0) buffer[samples + 1] = 5;
  transform.backward(buffer.data());
  for (std::size_t n = 0; n < samples; ++n)
    EXPECT_NEAR(buffer[n] / static_cast<float>(samples), signal[n].real(), 3e-6) << n;
}

TEST(Fft, RefusesNoSamplesAndMoreThanAnInt) {
  EXPECT_THROW(FftPlan(0), Error);
  EXPECT_THROW(RealFft(0), Error);
  EXPECT_THROW(FftPlan(std::size_t{1} << 31), Error);
  EXPECT_THROW(RealFft(std::size_t{1} << 31), Error);
}

}  // namespace
}  // namespace kvs
