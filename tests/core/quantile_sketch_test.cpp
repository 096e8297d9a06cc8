// SPDX-License-Identifier: Apache-2.0
#include "core/quantile_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kvs {
namespace {

TEST(QuantileSketch, StaysWithinItsErrorOfEveryQuantile) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> values(-6, 3);
  QuantileSketch sketch;
  std::vector<double> exact;
  for (int n = 0; n < 20000; ++n) {
    exact.push_back(values(random));
    sketch.add(exact.back());
  }
  std::ranges::sort(exact);
  ASSERT_EQ(sketch.count(), exact.size());
  for (const double share : {1e-5, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double expected = exact[static_cast<std::size_t>(std::ceil(share * 20000)) - 1];
    EXPECT_NEAR(sketch.quantile(share), expected, 1.0001 * QuantileSketch::kRelativeError * expected) << share;
  }
}

TEST(QuantileSketch, TheSumOfTwoIsTheSketchOfAllValues) {
  QuantileSketch low, high, all;
  for (int n = 1; n <= 100; ++n) {
    (n <= 50 ? low : high).add(n * 1e-3);
    all.add(n * 1e-3);
  }
  high += low;  // extends to smaller bins
  EXPECT_EQ(high.first_bin(), all.first_bin());
  EXPECT_TRUE(std::ranges::equal(high.counts(), all.counts()));
}

TEST(QuantileSketch, CountsWhatIsTooSmallAsZeroAndCutsWhatIsTooLarge) {
  QuantileSketch sketch;
  for (const double value : {-1e-7, 0.0, 1e-10, std::nan("")}) sketch.add(value);
  EXPECT_EQ(sketch.zeros(), 4U);
  EXPECT_EQ(sketch.quantile(1), 0);
  sketch.add(std::numeric_limits<double>::infinity());
  EXPECT_EQ(sketch.quantile(0.8), 0);
  EXPECT_NEAR(sketch.quantile(1), QuantileSketch::kGreatest, 0.01 * QuantileSketch::kGreatest);
}

TEST(QuantileSketch, BinsHoldTheirUpperEdge) {
  for (const std::ptrdiff_t bin : {-500, -1, 0, 1, 700}) {
    QuantileSketch sketch;
    sketch.add(QuantileSketch::edge(bin) * (1 - 1e-12));
    EXPECT_EQ(sketch.first_bin(), bin);
  }
}

}  // namespace
}  // namespace kvs
