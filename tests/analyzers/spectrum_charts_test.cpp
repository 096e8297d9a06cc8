// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "draw/svg.h"
#include "results/spectrum_charts.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

Spectrum spectrum_of(std::size_t layers, std::size_t heads, std::size_t tokens, double power) {
  Spectrum spectrum;
  spectrum.tokens = tokens;
  spectrum.sinks = tokens > 4 ? 4 : 0;
  spectrum.documents = 1;
  spectrum.layers.resize(layers);
  std::iota(spectrum.layers.begin(), spectrum.layers.end(), std::size_t{0});
  spectrum.states = {kSpectrumStates.begin(), kSpectrumStates.end()};
  for (const StateKind state : kSpectrumStates) {
    spectrum.power[state] = PowerTable(layers, heads, tokens);
    spectrum.without_sinks[state] = PowerTable(layers, heads, tokens - spectrum.sinks);
    for (double& value : spectrum.power[state].values) value = power;
    for (double& value : spectrum.without_sinks[state].values) value = power;
  }
  return spectrum;
}

TEST(LogBands, LowBinsStandAloneAndHighOnesAreAveraged) {
  // One band per octave: [1], [2, 3], [4 … 7], [8].
  const std::vector<double> power{1000, 1, 2, 4, 8, 8, 16, 16, 5};
  const std::vector<Band> bands = log_bands(power, 1);
  ASSERT_EQ(bands.size(), 4U);
  EXPECT_DOUBLE_EQ(bands[0].power, 1);
  EXPECT_DOUBLE_EQ(bands[1].power, 3);
  EXPECT_NEAR(bands[1].bin, std::sqrt(6.0), 1e-12);
  EXPECT_DOUBLE_EQ(bands[2].power, 12);
  EXPECT_DOUBLE_EQ(bands[3].power, 5);
}

TEST(LogBands, DcAloneHasNone) { EXPECT_TRUE(log_bands(std::vector<double>{3}, 4).empty()); }

TEST(SpectrumCharts, DrawAnyShape) {
  struct Shape {
    std::size_t layers, heads, tokens;
    double power;
  };
  for (const Shape shape : {Shape{1, 1, 1, 1}, Shape{1, 1, 16, 0}, Shape{7, 2, 33, 1e-3}, Shape{2, 20, 64, 4e5}}) {
    const Spectrum spectrum = spectrum_of(shape.layers, shape.heads, shape.tokens, shape.power);
    const SpectrumView view{spectrum, "tiny_model", true};
    const auto pages = spectrum_heads_charts(view);
    ASSERT_EQ(pages.size(), 1U);
    EXPECT_EQ(pages[0].panels.size(), shape.layers * shape.heads);
    for (const auto& [chart, words] :
         {std::pair(spectrum_layers_chart(view), "tiny_model"), std::pair(spectrum_rope_chart(view), "after RoPE"),
          std::pair(pages[0], "L0 H0")})
      EXPECT_THAT(draw::svg_file(chart), HasSubstr(words));
  }
}

TEST(SpectrumCharts, WithoutSinksTheirTitleSaysSo) {
  EXPECT_THAT(spectrum_layers_chart({spectrum_of(2, 1, 16, 1), "m", false}).heading, HasSubstr("tokens 4 to 15"));
}

TEST(SpectrumCharts, KeysOfAllLayersShareADecadeThatEnclosesThem) {
  Spectrum spectrum = spectrum_of(1, 1, 8, 5);
  spectrum.power[StateKind::kKPre].values[3] = 0.02;
  const draw::Chart chart = spectrum_layers_chart({spectrum, "m", true});
  EXPECT_EQ(chart.panels[1].y.axis, power_side({-2, 1}).axis);
  EXPECT_EQ(chart.panels[2].y.axis, power_side({0, 1}).axis);
}

TEST(SpectrumCharts, ManyPanelsFillSeveralPages) {
  EXPECT_EQ(spectrum_heads_pages(30, 3), 1U);
  EXPECT_EQ(spectrum_heads_pages(32, 8), 2U);  // 240 panels a page: 30 layers
  EXPECT_EQ(spectrum_heads_pages(2, 500), 2U);
  EXPECT_EQ(spectrum_heads_charts({spectrum_of(32, 8, 16, 1), "m", true}).size(), 2U);
}

TEST(SpectrumCharts, TheBandsOfKeysSpanTheHeads) {
  Spectrum spectrum = spectrum_of(1, 2, 8, 5);
  spectrum.power[StateKind::kKPre].values[1] = 1;  // bin 1 of head 0
  const draw::Chart chart = spectrum_rope_chart({spectrum, "m", true});
  const draw::Point& first = chart.panels[0].series[0].points[0];
  EXPECT_EQ(first.interval, std::optional(std::pair(1.0, 5.0)));
  EXPECT_EQ(first.y, 3);
}

}  // namespace
}  // namespace kvs
