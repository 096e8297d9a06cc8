// SPDX-License-Identifier: Apache-2.0
#include "analyzers/perturbation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "tests/analyzers/memory_source.h"

namespace kvs {
namespace {

constexpr std::size_t kLength = 16;

/// Only bin `bin` of the orthonormal DCT, with this amplitude.
double basis(std::size_t bin, std::size_t token) {
  const double scale = std::sqrt((bin == 0 ? 1.0 : 2.0) / static_cast<double>(kLength));
  return scale * std::cos(std::numbers::pi * static_cast<double>(bin) * (2.0 * static_cast<double>(token) + 1) /
                          (2.0 * static_cast<double>(kLength)));
}

using Value = MemorySource::Value;

std::vector<ByState<BandSimilarity>> compare(const Value& original, const Value& perturbed) {
  MemorySource a(1, 2, kLength, 3, original), b(1, 2, kLength, 3, perturbed);
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto ops = backend->make_spectral_ops();
  const std::vector<std::size_t> layers{0, 3};
  return compare_versions(*ops, a, b, 0, layers);
}

double similarity(const ByState<BandSimilarity>& layer, StateKind state, BinBand band) {
  return layer[state][static_cast<std::size_t>(band)];
}

TEST(Perturbation, EqualVersionsHaveSimilarityOne) {
  const Value value = [](std::size_t, std::size_t layer, StateKind, std::size_t head, std::size_t token,
                         std::size_t channel) {
    return static_cast<float>(std::sin(static_cast<double>(layer + 3 * head + 7 * token * token + channel)));
  };
  for (const auto& layer : compare(value, value))
    for (const StateKind state : kPerturbedStates)
      for (const double of_band : layer[state]) EXPECT_NEAR(of_band, 1, 1e-12);
}

TEST(Perturbation, AChangeInTheUpperHalfLeavesTheLowerHalf) {
  // Keys: DC 3, bin 2 of amplitude 1, bin 8 (the first of the upper half) of amplitude 1; in the other version bin 8
  // turns into bin 15. Values: bin 7, the last of the lower half, changes its sign.
  const auto value = [](bool perturbed) {
    return [perturbed](std::size_t, std::size_t, StateKind state, std::size_t, std::size_t token, std::size_t) {
      if (state == StateKind::kV) return static_cast<float>((perturbed ? -1 : 1) * basis(7, token));
      return static_cast<float>(3 * basis(0, token) + basis(2, token) + basis(perturbed ? 15 : 8, token));
    };
  };
  const auto layers = compare(value(false), value(true));
  ASSERT_EQ(layers.size(), 2U);
  for (const auto& layer : layers) {  // f32 states: 1e-6
    EXPECT_NEAR(similarity(layer, StateKind::kKPre, BinBand::kLow), 1, 1e-6);
    EXPECT_NEAR(similarity(layer, StateKind::kKPre, BinBand::kLowWithoutDc), 1, 1e-6);
    EXPECT_NEAR(similarity(layer, StateKind::kKPre, BinBand::kHigh), 0, 1e-6);
    EXPECT_NEAR(similarity(layer, StateKind::kV, BinBand::kLow), -1, 1e-6);
  }
}

TEST(Perturbation, DcWeighsInOneOfTheLowBandsAlone) {
  // Without DC bin 1 changes its sign: −1. With DC of amplitude 3: (9 − 1) / (9 + 1).
  const auto value = [](double sign) {
    return [sign](std::size_t, std::size_t, StateKind, std::size_t, std::size_t token, std::size_t) {
      return static_cast<float>(3 * basis(0, token) + sign * basis(1, token));
    };
  };
  const auto layer = compare(value(1), value(-1)).front();
  EXPECT_NEAR(similarity(layer, StateKind::kV, BinBand::kLow), 0.8, 1e-6);
  EXPECT_NEAR(similarity(layer, StateKind::kV, BinBand::kLowWithoutDc), -1, 1e-6);
}

TEST(Perturbation, NamesTheStateThatIsNotFinite) {
  const auto value = [](float bad) {
    return [bad](std::size_t, std::size_t layer, StateKind state, std::size_t, std::size_t token, std::size_t) {
      return layer == 3 && state == StateKind::kV && token == 5 ? bad : 1.0F;
    };
  };
  try {
    compare(value(1), value(std::numeric_limits<float>::quiet_NaN()));
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_NE(std::string(error.what()).find("v of layer 3"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kvs
