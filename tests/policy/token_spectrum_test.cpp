#include "policy/token_spectrum.h"

#include <gtest/gtest.h>

#include <complex>
#include <numbers>

#include "tests/kernels/support.h"

namespace kvs {
namespace {

constexpr std::size_t kHeadCount = 2, kWidth = 3, kPrefix = 20;
using Bin = std::complex<double>;

std::unique_ptr<Backend> one_thread() { return make_backend("cpu", DType::kF32, 1); }

/// Tokens [kv_head, token, channel], keys and values the same.
TokenRows::Part rows_of(Backend& backend, std::size_t tokens, std::uint32_t seed) {
  const auto values = test::random_values(kHeadCount * tokens * kWidth, seed);
  const std::array<std::size_t, 4> shape{1, kHeadCount, tokens, kWidth};
  return {test::uploaded<4>(backend, values, shape), test::uploaded<4>(backend, values, shape)};
}

/// Head 1's channel 2, of which the tests are.
std::vector<double> channel_of(Backend& backend, const TokenRows::Part& rows) {
  const auto values = download(backend, rows.v.view());
  const std::size_t tokens = rows.v.view().extent(2);
  std::vector<double> channel(tokens);
  for (std::size_t n = 0; n < tokens; ++n) channel[n] = double{values[(tokens + n) * kWidth + 2]};
  return channel;
}

Bin turn(std::size_t bin, std::size_t place, std::size_t samples) {
  return std::polar(1.0,
                    -2 * std::numbers::pi * static_cast<double>(bin * place % samples) / static_cast<double>(samples));
}

/// The bins held, of that channel, by number.
std::vector<std::pair<std::size_t, Bin>> held(Backend& backend, const TokenSpectrum& spectrum) {
  const KeySpectrum view = spectrum.view();
  const auto values = download(backend, view.v);
  const auto numbers = download(backend, view.grid.bins);
  std::vector<std::pair<std::size_t, Bin>> bins;
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const std::size_t at = (numbers.size() + n) * 2 * kWidth + 2;
    bins.emplace_back(numbers[n], Bin(values[at], values[at + kWidth]));
  }
  return bins;
}

TEST(TokenSpectrum, BinsAreTheTransformOfWhatTheLastRebuildGaveAndOfTheTokensSince) {
  const auto backend = one_thread();
  TokenSpectrum spectrum(4, {0, 2});
  const TokenRows::Part prefix = rows_of(*backend, kPrefix, 1), text = rows_of(*backend, 70, 2);
  const std::vector<double> added = channel_of(*backend, text);
  spectrum.assign(*backend, prefix);
  std::vector<double> tokens = channel_of(*backend, prefix);
  for (std::size_t n = 0; n < added.size(); ++n) {
    if (spectrum.tokens() == spectrum.samples()) tokens = channel_of(*backend, spectrum.restored(*backend));
    spectrum.add(*backend, text.k.view(), text.v.view(), n, TokenSpectrum::Full::kRebuild);
    tokens.push_back(added[n]);
    ASSERT_EQ(spectrum.tokens(), kPrefix + n + 1);
    for (const auto& [bin, found] : held(*backend, spectrum)) {
      Bin expected = 0;
      for (std::size_t t = 0; t < tokens.size(); ++t) expected += tokens[t] * turn(bin, t, spectrum.samples());
      // FAEDKV's state is the mean over tokens.
      ASSERT_LT(std::abs(found - expected) / static_cast<double>(tokens.size()), 1e-5) << "token " << n;
    }
  }
  EXPECT_EQ(spectrum.samples(), 160U);  // rebuilt at 20, 40 and 80 tokens
  // Chunks 0 and 2 of 4 of 81 bins are [0, 20) and [40, 60).
  EXPECT_EQ(spectrum.bytes().stored, 2 * (20 + 20) * kHeadCount * kWidth * 4);
}

TEST(TokenSpectrum, AllChunksGiveEveryTokenBackWhileTheGridGrows) {
  const auto backend = one_thread();
  TokenSpectrum spectrum(3, {0, 1, 2});
  const TokenRows::Part prefix = rows_of(*backend, kPrefix, 1), text = rows_of(*backend, 70, 2);
  spectrum.assign(*backend, prefix);
  for (std::size_t n = 0; n < 70; ++n)
    spectrum.add(*backend, text.k.view(), text.v.view(), n, TokenSpectrum::Full::kRebuild);
  std::vector<double> tokens = channel_of(*backend, prefix);
  for (const double value : channel_of(*backend, text)) tokens.push_back(value);
  const std::vector<double> found = channel_of(*backend, spectrum.restored(*backend));
  ASSERT_EQ(found.size(), tokens.size());
  for (std::size_t n = 0; n < tokens.size(); ++n) EXPECT_NEAR(found[n], tokens[n], 1e-5);  // 70 roundings of 3 sums
}

TEST(TokenSpectrum, WrappingIsThePapersUpdate) {
  const auto backend = one_thread();
  constexpr std::size_t kAdded = 33;
  TokenSpectrum spectrum(2, {0, 1});
  const TokenRows::Part prefix = rows_of(*backend, kPrefix, 1), text = rows_of(*backend, kAdded, 2);
  spectrum.assign(*backend, prefix);
  for (std::size_t n = 0; n < kAdded; ++n)
    spectrum.add(*backend, text.k.view(), text.v.view(), n, TokenSpectrum::Full::kWrap);
  EXPECT_EQ(spectrum.tokens(), kPrefix);
  const std::vector<double> first = channel_of(*backend, prefix), later = channel_of(*backend, text);
  for (const auto& [bin, found] : held(*backend, spectrum)) {
    Bin state = 0;  // S, from conj(DFT)/N on: S ← W (S + x/N)
    for (std::size_t n = 0; n < kPrefix; ++n) state += first[n] * std::conj(turn(bin, n, kPrefix)) / double{kPrefix};
    for (const double x : later) state = turn(bin, 1, kPrefix) * (state + x / double{kPrefix});
    // The state turns by a place with every token, the sums do not.
    const Bin turned = std::conj(found / double{kPrefix} * std::conj(turn(bin, kAdded, kPrefix)));
    EXPECT_LT(std::abs(state - turned), 1e-6) << "bin " << bin;
  }
}

}  // namespace
}  // namespace kvs
