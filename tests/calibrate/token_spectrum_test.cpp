// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/token_spectrum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <complex>
#include <iterator>
#include <numbers>
#include <numeric>

#include "tests/kernels/support.h"

namespace kvs {
namespace {

constexpr std::size_t kHeadCount = 2, kWidth = 3, kPrefix = 20;
using Bin = std::complex<double>;

std::unique_ptr<Backend> one_thread() { return make_backend("cpu", DType::kF32, 1); }

/// Tokens [kv_head, token, channel].
TokenRows::Part rows_of(Backend& backend, std::size_t tokens, std::uint32_t seed) {
  const std::array<std::size_t, 4> shape{1, kHeadCount, tokens, kWidth};
  const auto states = [&](std::uint32_t of) {
    return test::uploaded<4>(backend, test::random_values(kHeadCount * tokens * kWidth, of), shape);
  };
  return {states(seed), states(seed + 100)};
}

/// Channel 2 of head 1, which the tests look at.
std::vector<double> channel_of(Backend& backend, const BackendTensor<float, 4>& rows) {
  const auto values = download(backend, rows.view());
  const std::size_t tokens = rows.view().extent(2);
  std::vector<double> channel(tokens);
  for (std::size_t n = 0; n < tokens; ++n) channel[n] = double{values[(tokens + n) * kWidth + 2]};
  return channel;
}

Bin turn(std::size_t bin, std::size_t place, std::size_t samples) {
  return std::polar(1.0,
                    -2 * std::numbers::pi * static_cast<double>(bin * place % samples) / static_cast<double>(samples));
}

/// The stored bins of that channel, by number.
std::vector<std::pair<std::size_t, Bin>> held(Backend& backend, const BinnedStates& states) {
  const auto values = download(backend, states.sums);
  const auto numbers = download(backend, states.grid.bins);
  std::vector<std::pair<std::size_t, Bin>> bins;
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const std::size_t at = (numbers.size() + n) * 2 * kWidth + 2;
    bins.emplace_back(numbers[n], Bin(values[at], values[at + kWidth]));
  }
  return bins;
}

/// Numbers of the stored bins.
std::vector<std::size_t> numbers_of(Backend& backend, const BinnedStates& states) {
  std::vector<std::size_t> numbers;
  for (const auto& [bin, sum] : held(backend, states)) numbers.push_back(bin);
  return numbers;
}

std::vector<std::size_t> bins_between(std::size_t first, std::size_t end) {
  std::vector<std::size_t> numbers(end - first);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

TEST(TokenSpectrum, BinsAreTheTransformOfWhatTheLastRebuildGaveAndOfTheTokensSince) {
  const auto backend = one_thread();
  TokenSpectrum spectrum(4, {0, 2}, {1});
  const TokenRows::Part prefix = rows_of(*backend, kPrefix, 1), text = rows_of(*backend, 70, 2);
  spectrum.assign(*backend, prefix);
  struct Signal {
    BackendTensor<float, 4> TokenRows::Part::*rows;
    BinnedStates KeySpectrum::*states;
    std::vector<double> tokens;
  };
  std::array signals{Signal{&TokenRows::Part::k, &KeySpectrum::k, channel_of(*backend, prefix.k)},
                     Signal{&TokenRows::Part::v, &KeySpectrum::v, channel_of(*backend, prefix.v)}};
  for (std::size_t n = 0; n < 70; ++n) {
    if (spectrum.tokens() == spectrum.samples()) {
      const TokenRows::Part restored = spectrum.restored(*backend);
      for (Signal& signal : signals) signal.tokens = channel_of(*backend, restored.*signal.rows);
    }
    spectrum.add(*backend, text.k.view(), text.v.view(), n, TokenSpectrum::Full::kRebuild);
    ASSERT_EQ(spectrum.tokens(), kPrefix + n + 1);
    for (auto& [rows, states, tokens] : signals) {
      tokens.push_back(channel_of(*backend, text.*rows)[n]);
      for (const auto& [bin, found] : held(*backend, spectrum.view().*states)) {
        Bin expected = 0;
        for (std::size_t t = 0; t < tokens.size(); ++t) expected += tokens[t] * turn(bin, t, spectrum.samples());
        // FAEDKV's state is the mean over tokens.
        ASSERT_LT(std::abs(found - expected) / static_cast<double>(tokens.size()), 1e-5) << "token " << n;
      }
    }
  }
  EXPECT_EQ(spectrum.samples(), 160U);  // rebuilt at 20, 40 and 80 tokens
  // 4 chunks of 81 bins: the first three are [0, 20), [20, 40) and [40, 60).
  std::vector<std::size_t> of_keys = bins_between(0, 20);
  std::ranges::copy(bins_between(40, 60), std::back_inserter(of_keys));
  EXPECT_EQ(numbers_of(*backend, spectrum.view().k), of_keys);
  EXPECT_EQ(numbers_of(*backend, spectrum.view().v), bins_between(20, 40));
  EXPECT_EQ(spectrum.bytes().stored, (20 + 20 + 20) * kHeadCount * kWidth * 4);
}

TEST(TokenSpectrum, AllChunksGiveEveryTokenBackWhileTheGridGrows) {
  const auto backend = one_thread();
  TokenSpectrum spectrum(3, {0}, {0, 1, 2});
  const TokenRows::Part prefix = rows_of(*backend, kPrefix, 1), text = rows_of(*backend, 70, 2);
  spectrum.assign(*backend, prefix);
  for (std::size_t n = 0; n < 70; ++n)
    spectrum.add(*backend, text.k.view(), text.v.view(), n, TokenSpectrum::Full::kRebuild);
  std::vector<double> tokens = channel_of(*backend, prefix.v);
  for (const double value : channel_of(*backend, text.v)) tokens.push_back(value);
  const std::vector<double> found = channel_of(*backend, spectrum.restored(*backend).v);
  ASSERT_EQ(found.size(), tokens.size());
  for (std::size_t n = 0; n < tokens.size(); ++n) EXPECT_NEAR(found[n], tokens[n], 1e-5);  // 70 roundings of 3 sums
}

TEST(TokenSpectrum, WrappingIsThePapersUpdate) {
  const auto backend = one_thread();
  constexpr std::size_t kAdded = 33;
  TokenSpectrum spectrum(2, {0}, {0, 1});
  const TokenRows::Part prefix = rows_of(*backend, kPrefix, 1), text = rows_of(*backend, kAdded, 2);
  spectrum.assign(*backend, prefix);
  for (std::size_t n = 0; n < kAdded; ++n)
    spectrum.add(*backend, text.k.view(), text.v.view(), n, TokenSpectrum::Full::kWrap);
  EXPECT_EQ(spectrum.tokens(), kPrefix);
  const std::vector<double> first = channel_of(*backend, prefix.v), later = channel_of(*backend, text.v);
  for (const auto& [bin, found] : held(*backend, spectrum.view().v)) {
    Bin state = 0;  // S, from conj(DFT)/N on: S ← W (S + x/N)
    for (std::size_t n = 0; n < kPrefix; ++n) state += first[n] * std::conj(turn(bin, n, kPrefix)) / double{kPrefix};
    for (const double x : later) state = turn(bin, 1, kPrefix) * (state + x / double{kPrefix});
    // The state is rotated by one place with every token, the sums are not.
    const Bin turned = std::conj(found / double{kPrefix} * std::conj(turn(bin, kAdded, kPrefix)));
    EXPECT_LT(std::abs(state - turned), 1e-6) << "bin " << bin;
  }
}

}  // namespace
}  // namespace kvs
