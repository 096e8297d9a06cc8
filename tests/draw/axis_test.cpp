// SPDX-License-Identifier: Apache-2.0
#include "draw/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "draw/numbers.h"

namespace kvs::draw {
namespace {

std::vector<std::string> tick_labels(const Axis& axis, std::size_t most, Axis::Label label = plain_label) {
  std::vector<std::string> labels;
  for (const auto& tick : axis.ticks(most, label)) labels.push_back(tick.label);
  return labels;
}
using Labels = std::vector<std::string>;

TEST(Axis, TicksAreRoundNumbers) {
  EXPECT_EQ(tick_labels({0, 10}, 5), (Labels{"0", "2", "4", "6", "8", "10"}));
  EXPECT_EQ(tick_labels({-0.3, 0.31}, 4), (Labels{"−0.2", "0", "0.2"}));
  EXPECT_EQ(tick_labels({1, 1000, Axis::Scale::kLogarithmic}, 5), (Labels{"1", "10", "100", "1,000"}));
  EXPECT_EQ(tick_labels({0.09, 1, Axis::Scale::kLogarithmic}, 6, percent_label),
            (Labels{"10\u00A0%", "20\u00A0%", "50\u00A0%", "100\u00A0%"}));
  EXPECT_EQ(tick_labels({1e-12, 1, Axis::Scale::kLogarithmic}, 6).size(), 7U);  // every second decade
  EXPECT_EQ(tick_labels({1e-6, 1e-3, Axis::Scale::kLogarithmic}, 4), (Labels{"1e−6", "1e−5", "1e−4", "0.001"}));
  EXPECT_EQ(tick_labels({0.2, 1.06, Axis::Scale::kHalving}, 6, percent_label),
            (Labels{"25\u00A0%", "50\u00A0%", "100\u00A0%"}));
  EXPECT_TRUE(tick_labels({0, 1}, 0).empty());
}

TEST(Axis, AShortLogarithmicScaleHasFinerTicks) {
  EXPECT_EQ(tick_labels({9, 45, Axis::Scale::kLogarithmic}, 7), (Labels{"10", "12", "15", "20", "25", "30", "40"}));
  EXPECT_EQ(tick_labels({0.99, 1.06, Axis::Scale::kLogarithmic}, 4), (Labels{"1", "1.02", "1.04", "1.06"}));
}

TEST(Axis, TheLowEndOfALongLogarithmicScaleIsNotZero) {
  EXPECT_EQ(tick_labels({1, 1e150, Axis::Scale::kLogarithmic}, 3, decade_label).front(), "10\u2070");
}

TEST(Axis, DecadesHaveTheirExponentOnTop) {
  EXPECT_EQ(decade_label(1000), "10\u00B3");
  EXPECT_EQ(decade_label(1e-12), "10\u207B\u00B9\u00B2");
  EXPECT_EQ(decade_label(1), "10\u2070");
  EXPECT_EQ(decade_label(20), "20");
  EXPECT_EQ(decade_label(0), "0");
}

TEST(Axis, AnExponentialBeyondADoubleHasAPlace) {
  EXPECT_DOUBLE_EQ(drawn_exponential(1), std::exp(1));
  EXPECT_TRUE(std::isfinite(drawn_exponential(1e4) / drawn_exponential(-1e4)));
}

TEST(Axis, PlacesValuesBetweenItsEnds) {
  const Axis linear(2, 4), logarithmic(1, 100, Axis::Scale::kLogarithmic);
  EXPECT_DOUBLE_EQ(linear.place(3), 0.5);
  EXPECT_DOUBLE_EQ(logarithmic.place(10), 0.5);
  EXPECT_DOUBLE_EQ(linear.place(9), 1);
  EXPECT_DOUBLE_EQ(logarithmic.place(0), 0);  // zero has no logarithm: it is drawn at the low end
  EXPECT_DOUBLE_EQ(Axis(5, 5).place(5), 0);   // one value also makes an axis
}

// Any result of arithmetic has a place on a page.
TEST(Axis, HasEndsForWhatNoAxisReaches) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kMost = std::numeric_limits<double>::max(),
                   kDenormal = std::numeric_limits<double>::denorm_min();
  for (const Axis::Scale scale : {Axis::Scale::kLinear, Axis::Scale::kLogarithmic, Axis::Scale::kHalving})
    for (const double low : {-kInfinity, -kMost, 0.0, kDenormal, 1.0, kMost, kInfinity, std::nan("")})
      for (const double high : {kDenormal, 1.0, kMost, kInfinity, std::nan("")}) {
        const Axis axis(low, high, scale);
        EXPECT_LT(axis.low(), axis.high()) << low << ' ' << high;
        EXPECT_LE(axis.ticks(6, plain_label).size(), 64U) << low << ' ' << high;
        for (const double value : {low, high, kDenormal, 1.0, kMost}) {
          EXPECT_GE(axis.place(value), 0) << low << ' ' << high << ' ' << value;
          EXPECT_LE(axis.place(value), 1) << low << ' ' << high << ' ' << value;
        }
      }
  EXPECT_LT(Axis::rounded(0, kDenormal, 5).low(), Axis::rounded(0, kDenormal, 5).high());
  EXPECT_LE(Axis(1e6, 1e6 + 1e-5).ticks(5, plain_label).size(), 12U);
}

TEST(Numbers, HoldWhatAHundredTimesOfItDoesNot) {
  EXPECT_EQ(shown_percent(1e308), "1.00e310\u00A0%");
  EXPECT_EQ(shown_tenths(1.5e308), "1.50e310\u00A0%");
  EXPECT_EQ(shown_change(1e308), "+1.0e310\u00A0%");
  EXPECT_EQ(shown_change(std::numeric_limits<double>::infinity()), "–");
  EXPECT_EQ(shown_tenths(std::numeric_limits<double>::infinity()), "–");
  EXPECT_EQ(shown_key(std::numeric_limits<double>::infinity()), "1e+300");
}

TEST(Numbers, HaveThreeDigitsAndSeparators) {
  EXPECT_EQ(shown(0.026388), "0.0264");
  EXPECT_EQ(shown(-30.46, 4), "−30.46");
  EXPECT_EQ(shown(1234.5), "1,234");
  EXPECT_EQ(shown(3.14e-7), "3.14e−7");
  EXPECT_EQ(shown(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(shown_short(16.0), "16");
  EXPECT_EQ(shown_percent(0.125), "12.5\u00A0%");
  EXPECT_EQ(shown_tenths(0.1396), "14.0\u00A0%");
  EXPECT_EQ(shown_change(0.02), "+2.0\u00A0%");
  EXPECT_EQ(shown_change(-0.0034), "−0.34\u00A0%");
  EXPECT_EQ(shown_change(0.00004), "0\u00A0%");
  EXPECT_EQ(shown_count(1234567), "1,234,567");
  EXPECT_EQ(counted(1, "layer") + ", " + counted(2, "head"), "1 layer, 2 heads");
}

}  // namespace
}  // namespace kvs::draw
