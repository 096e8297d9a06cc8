// SPDX-License-Identifier: Apache-2.0
#include "kernels/spectral_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/spectral_ops.h"

namespace kvs {
namespace {

using Signal = std::vector<double>;

// Orthonormal DCT-II by its definition: X[k] = c_k Σ x[n] cos(π(2n + 1)k / 2N), c_0 = √(1/N), c_k = √(2/N).
Signal naive_dct(const Signal& x) {
  const std::size_t size = x.size();
  Signal out(size);
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t n = 0; n < size; ++n) {
      out[k] += x[n] * std::cos(std::numbers::pi * static_cast<double>((2 * n + 1) * k % (4 * size)) /
                                static_cast<double>(2 * size));
    }
    out[k] *= std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(size));
  }
  return out;
}

Signal naive_inverse_dct(const Signal& coefficients) {
  const std::size_t size = coefficients.size();
  Signal out(size);
  for (std::size_t n = 0; n < size; ++n) {
    for (std::size_t k = 0; k < size; ++k) {
      out[n] += coefficients[k] * std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(size)) *
                std::cos(std::numbers::pi * static_cast<double>((2 * n + 1) * k % (4 * size)) /
                         static_cast<double>(2 * size));
    }
  }
  return out;
}

// All N bins of the DFT divided by √N.
std::vector<std::complex<double>> naive_dft(const Signal& x) {
  const std::size_t size = x.size();
  std::vector<std::complex<double>> out(size);
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t n = 0; n < size; ++n) {
      out[k] +=
          x[n] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(n * k % size) / static_cast<double>(size));
    }
    out[k] /= std::sqrt(static_cast<double>(size));
  }
  return out;
}

// The real part of the inverse DFT after bin k of N was multiplied by full_gain[k].
Signal naive_dft_filter(const Signal& x, const Signal& full_gain) {
  const std::size_t size = x.size();
  const auto spectrum = naive_dft(x);
  Signal out(size);
  for (std::size_t n = 0; n < size; ++n) {
    for (std::size_t k = 0; k < size; ++k) {
      out[n] += (full_gain[k] * spectrum[k] *
                 std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(n * k % size) / static_cast<double>(size)))
                    .real();
    }
    out[n] /= std::sqrt(static_cast<double>(size));
  }
  return out;
}

struct States {
  States(std::size_t heads, std::size_t tokens, std::size_t head_dim, unsigned seed = 1)
      : shape{heads, tokens, head_dim}, values(heads * tokens * head_dim) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.5F, 1.0F);
    for (float& value : values) value = normal(generator);
  }
  BackendView<const float, 3> view() const { return {std::span<const float>(values), shape}; }
  Signal channel(std::size_t head, std::size_t index, std::size_t first, std::size_t last) const {
    Signal out;
    for (std::size_t t = first; t < last; ++t) out.push_back(values[(head * shape[1] + t) * shape[2] + index]);
    return out;
  }
  std::array<std::size_t, 3> shape;
  std::vector<float> values;
};

std::vector<double> run_power(const States& states, Transform transform, std::size_t first_token = 0) {
  std::vector<double> power(states.shape[0] * bins_of(transform, states.shape[1] - first_token));
  make_cpu_spectral_ops()->power(states.view(), transform, first_token, power);
  return power;
}

// [member, head, token, channel]
std::vector<float> run_filter(const States& states, Transform transform, std::size_t first, std::size_t last,
                              const std::vector<std::vector<double>>& gains) {
  std::vector<double> packed;
  for (const auto& gain : gains) packed.insert(packed.end(), gain.begin(), gain.end());
  std::vector<float> out(gains.size() * states.values.size());
  make_cpu_spectral_ops()->filter(
      states.view(), transform, first, last, {std::span<const double>(packed), {gains.size(), gains[0].size()}},
      {std::span<float>(out), {gains.size(), states.shape[0], states.shape[1], states.shape[2]}});
  return out;
}

class EveryLength : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(SpectralOps, EveryLength, testing::Values(1, 2, 3, 7, 64, 1000, 1021));  // 1021 is prime

// Double sums over N ≤ 1000 samples of order 1: the naive sums themselves are good to about 1e-12 of the power.
constexpr double kRelative = 1e-10;

TEST_P(EveryLength, DctPowerIsTheMeanSquaredCoefficientOfTheChannels) {
  const States states(2, GetParam(), 5);  // 5 channels: two pairs and a single one
  const std::vector<double> power = run_power(states, Transform::kDct);
  for (std::size_t head = 0; head < 2; ++head) {
    std::vector<double> expected(GetParam());
    for (std::size_t c = 0; c < 5; ++c) {
      const Signal x = naive_dct(states.channel(head, c, 0, GetParam()));
      for (std::size_t k = 0; k < x.size(); ++k) expected[k] += x[k] * x[k] / 5;
    }
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(power[head * GetParam() + k], expected[k], kRelative * (expected[k] + 1e-3)) << "bin " << k;
    }
  }
}

TEST_P(EveryLength, DftPowerIsTheMeanSquaredHalfSpectrumOfTheChannels) {
  const States states(1, GetParam(), 18);  // one full block of 16 channels and a pair
  const std::vector<double> power = run_power(states, Transform::kDft);
  ASSERT_EQ(power.size(), GetParam() / 2 + 1);
  std::vector<double> expected(power.size());
  for (std::size_t c = 0; c < 18; ++c) {
    const auto x = naive_dft(states.channel(0, c, 0, GetParam()));
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += std::norm(x[k]) / 18;
  }
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_NEAR(power[k], expected[k], kRelative * (expected[k] + 1e-3)) << "bin " << k;
  }
}

TEST_P(EveryLength, DctPowerKeepsTheEnergyOfTheMeanChannel) {
  const States states(1, GetParam(), 64);
  double energy = 0, sum = 0;
  for (const float value : states.values) energy += static_cast<double>(value) * value / 64;
  for (const double value : run_power(states, Transform::kDct)) sum += value;
  EXPECT_NEAR(sum / energy, 1, 1e-13);
}

TEST_P(EveryLength, DftFilterMatchesTheDefinitionWithAnyGains) {
  const std::size_t size = GetParam();
  const States states(1, size, 3);
  std::vector<double> half(size / 2 + 1);
  for (std::size_t k = 0; k < half.size(); ++k) half[k] = 0.1 * static_cast<double>(k % 11);
  Signal full(size);
  for (std::size_t k = 0; k < size; ++k) full[k] = half[std::min(k, size - k)];
  const std::vector<float> out = run_filter(states, Transform::kDft, 0, size, {half});
  for (std::size_t c = 0; c < 3; ++c) {
    const Signal expected = naive_dft_filter(states.channel(0, c, 0, size), full);
    for (std::size_t t = 0; t < size; ++t) EXPECT_NEAR(out[t * 3 + c], expected[t], 1e-6);  // rounding to f32, |x| < 8
  }
}

TEST_P(EveryLength, DctFilterMatchesTheDefinitionWithAnyGains) {
  const std::size_t size = GetParam();
  const States states(1, size, 3);
  std::vector<double> gain(size);
  for (std::size_t k = 0; k < size; ++k) gain[k] = 0.1 * static_cast<double>(k % 11);
  const std::vector<float> out = run_filter(states, Transform::kDct, 0, size, {gain});
  for (std::size_t c = 0; c < 3; ++c) {
    Signal coefficients = naive_dct(states.channel(0, c, 0, size));
    for (std::size_t k = 0; k < size; ++k) coefficients[k] *= gain[k];
    const Signal expected = naive_inverse_dct(coefficients);
    for (std::size_t t = 0; t < size; ++t) EXPECT_NEAR(out[t * 3 + c], expected[t], 1e-6);
  }
}

TEST_P(EveryLength, GainsOfOneReturnTheSameFloats) {
  const States states(2, GetParam(), 17);
  for (const Transform transform : {Transform::kDct, Transform::kDft}) {
    const std::vector<double> ones(bins_of(transform, GetParam()), 1.0);
    const std::vector<float> out = run_filter(states, transform, 0, GetParam(), {ones});
    // Double round-off (about 1e-15 of the largest value) is far below half a float step of any value above 1e-6.
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_NEAR(out[i], states.values[i], 1e-12 + 1.2e-7 * std::abs(out[i]));
  }
}

TEST(SpectralPower, AConstantChannelHasOnlyDc) {
  States states(1, 64, 4);
  std::fill(states.values.begin(), states.values.end(), 3.0F);
  for (const Transform transform : {Transform::kDct, Transform::kDft}) {
    const std::vector<double> power = run_power(states, transform);
    EXPECT_NEAR(power[0], 64 * 9.0, 1e-10);  // (Σ x)²/N
    for (std::size_t k = 1; k < power.size(); ++k) EXPECT_LT(power[k], 1e-25);
  }
}

// An alternating ±1 has only the DFT's last bin, |X|² = N; the other bins hold rounding, of which an FFT has O(√(log
// N)).
TEST(SpectralPower, AnAlternatingSignalHasItsLastBinAloneAtEveryUsualLength) {
  for (const std::size_t tokens : {508, 512, 1020, 1024, 2044, 2048, 4096, 8188, 8192, 32764, 32768}) {
    States states(1, tokens, 2);
    for (std::size_t t = 0; t < tokens; ++t) states.values[2 * t] = states.values[2 * t + 1] = t % 2 == 0 ? 1 : -1;
    const std::vector<double> power = run_power(states, Transform::kDft);
    const auto energy = static_cast<double>(tokens);
    EXPECT_NEAR(power.back() / energy, 1, 1e-13) << tokens;
    for (std::size_t k = 0; k + 1 < power.size(); ++k) ASSERT_LT(power[k], 1e-28 * energy) << "bin " << k;
  }
}

TEST(SpectralPower, ZeroStatesHaveZeroPowerAndNoNan) {
  States states(1, 12, 2);
  std::fill(states.values.begin(), states.values.end(), 0.0F);
  EXPECT_THAT(run_power(states, Transform::kDct), testing::Each(0.0));
  EXPECT_THAT(run_power(states, Transform::kDft), testing::Each(0.0));
}

TEST(SpectralPower, SkippedFirstTokensDoNotCount) {
  States states(2, 40, 16);
  for (const Transform transform : {Transform::kDct, Transform::kDft}) {
    const std::vector<double> before = run_power(states, transform, 4);
    for (std::size_t head = 0; head < 2; ++head) {
      for (std::size_t i = 0; i < 4 * 16; ++i) states.values[head * 40 * 16 + i] = 1e6F;
    }
    EXPECT_EQ(run_power(states, transform, 4), before);
  }
}

TEST(SpectralPower, SkippingTokensEqualsTheSpectrumOfTheRest) {
  const States states(1, 40, 16);
  States rest(1, 36, 16);
  rest.values.assign(states.values.begin() + 4 * 16, states.values.end());
  EXPECT_EQ(run_power(states, Transform::kDct, 4), run_power(rest, Transform::kDct));
}

TEST(SpectralPower, RefusesToSkipEveryToken) {
  const States states(1, 4, 2);
  std::vector<double> none;
  EXPECT_THROW(make_cpu_spectral_ops()->power(states.view(), Transform::kDct, 4, none), Error);
}

TEST(SpectralFilter, HalfGainsEqualTheRealPartAfterOnlyOneOfTwoMirrorBinsWasDropped) {
  const States states(1, 20, 2);
  std::vector<double> half(11, 1.0);
  Signal full(20, 1.0);
  for (const std::size_t k : {3U, 4U, 5U}) half[k] = 0.5, full[k] = 0;  // bins 17, 16 and 15 stay
  const std::vector<float> out = run_filter(states, Transform::kDft, 0, 20, {half});
  for (std::size_t c = 0; c < 2; ++c) {
    const Signal expected = naive_dft_filter(states.channel(0, c, 0, 20), full);
    for (std::size_t t = 0; t < 20; ++t) EXPECT_NEAR(out[t * 2 + c], expected[t], 1e-6);
  }
}

TEST(SpectralFilter, TokensOutsideTheSegmentStayAsTheyAre) {
  const States states(2, 30, 18);
  const std::vector<double> zero(11, 0.0);  // 20 samples
  const std::vector<float> out = run_filter(states, Transform::kDft, 4, 24, {zero});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t token = i / 18 % 30;
    EXPECT_EQ(out[i], token >= 4 && token < 24 ? 0.0F : states.values[i]);
  }
}

TEST(SpectralFilter, EachMemberIsFilteredByItsOwnGains) {
  const States states(2, 33, 20);
  const std::size_t bins = 17;
  std::vector<std::vector<double>> gains(3, std::vector<double>(bins, 1.0));
  gains[1][0] = 0, gains[2][5] = 0;
  const std::vector<float> all = run_filter(states, Transform::kDft, 0, 33, gains);
  for (std::size_t member = 0; member < 3; ++member) {
    const std::vector<float> alone = run_filter(states, Transform::kDft, 0, 33, {gains[member]});
    EXPECT_TRUE(
        std::equal(alone.begin(), alone.end(), all.begin() + static_cast<std::ptrdiff_t>(member * alone.size())));
  }
}

TEST(SpectralFilter, TheInputMayBeAMemberOfTheOutput) {
  const States states(2, 33, 20);
  std::vector<double> gains(3 * 17, 1.0);
  gains[0] = 0, gains[17 + 2] = 0, gains[34 + 9] = 0;
  const std::size_t size = states.values.size();
  std::vector<float> expected(3 * size);
  const auto ops = make_cpu_spectral_ops();
  const TensorView<const double, 2> gain_view(std::span<const double>(gains), {3, 17});
  ops->filter(states.view(), Transform::kDft, 0, 33, gain_view, {std::span<float>(expected), {3, 2, 33, 20}});
  for (const std::size_t member : {0U, 1U, 2U}) {
    std::vector<float> out(3 * size);
    const auto part = std::span(out).subspan(member * size, size);
    std::copy(states.values.begin(), states.values.end(), part.begin());
    ops->filter({std::span<const float>(part), {2, 33, 20}}, Transform::kDft, 0, 33, gain_view,
                {std::span<float>(out), {3, 2, 33, 20}});
    EXPECT_EQ(out, expected) << "x in member " << member;
  }
}

TEST(SpectralFilter, RefusesAnEmptySegmentAndOneBeyondTheTokens) {
  const States states(1, 8, 2);
  EXPECT_THROW(run_filter(states, Transform::kDft, 3, 3, {{1.0}}), Error);
  EXPECT_THROW(run_filter(states, Transform::kDft, 0, 9, {std::vector<double>(5, 1.0)}), Error);
}

struct BinCase {
  std::size_t tokens, samples;
  std::vector<std::uint32_t> bins;
};
const std::vector<BinCase> kBinCases{{1, 1, {0}}, {5, 8, {0, 3, 4}}, {9, 9, {1, 2, 4}}, {40, 64, {0, 1, 31, 32}}};

TEST(SpectralBins, AreThoseOfTheTokensFollowedByZerosAndAddUpSampleBySample) {
  for (const BinCase& c : kBinCases) {
    const States states(2, c.tokens, 5);
    const BinGrid grid{{std::span<const std::uint32_t>(c.bins), {c.bins.size()}}, c.samples};
    std::vector<float> found(2 * c.bins.size() * 2 * 5), added(found.size());
    const std::array<std::size_t, 4> shape{2, c.bins.size(), 2, 5};
    const auto ops = make_cpu_spectral_ops();
    ops->analyze(states.view(), grid, {std::span(found), shape});
    for (std::size_t token = 0; token < c.tokens; ++token)
      ops->add_sample(states.view(), token, token, grid, {std::span(added), shape});
    for (std::size_t head = 0; head < 2; ++head)
      for (std::size_t channel = 0; channel < 5; ++channel) {
        Signal signal = states.channel(head, channel, 0, c.tokens);
        signal.resize(c.samples);
        const auto bins = naive_dft(signal);
        for (std::size_t n = 0; n < c.bins.size(); ++n) {
          const auto expected = bins[c.bins[n]] * std::sqrt(static_cast<double>(c.samples));
          const std::size_t at = ((head * c.bins.size() + n) * 2) * 5 + channel;
          // Values up to 40 times 3, rounded to f32 once, or at each of 40 samples.
          EXPECT_NEAR(found[at], expected.real(), 1e-5);
          EXPECT_NEAR(found[at + 5], expected.imag(), 1e-5);
          EXPECT_NEAR(added[at], expected.real(), 1e-4);
          EXPECT_NEAR(added[at + 5], expected.imag(), 1e-4);
        }
      }
  }
}

TEST(SpectralBins, GiveTheTokensBackAsAFilterThatKeepsThem) {
  for (const BinCase& c : kBinCases) {
    if (c.tokens < c.samples) continue;  // a filter has no zeros after the tokens
    const States states(2, c.tokens, 5);
    const BinGrid grid{{std::span<const std::uint32_t>(c.bins), {c.bins.size()}}, c.samples};
    std::vector<float> bins(2 * c.bins.size() * 2 * 5), back(states.values.size());
    const std::array<std::size_t, 4> shape{2, c.bins.size(), 2, 5};
    const auto ops = make_cpu_spectral_ops();
    ops->analyze(states.view(), grid, {std::span(bins), shape});
    ops->synthesize({std::span<const float>(bins), shape}, grid, {std::span(back), states.shape});
    std::vector<double> gains(bins_of(Transform::kDft, c.samples));
    for (const std::uint32_t bin : c.bins) gains[bin] = 1;
    const std::vector<float> expected = run_filter(states, Transform::kDft, 0, c.tokens, {gains});
    for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], expected[i], 2e-6);  // bins are f32
  }
}

}  // namespace
}  // namespace kvs
