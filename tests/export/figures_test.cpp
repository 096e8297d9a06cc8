#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "analyzers/figures/bands.h"
#include "analyzers/figures/energy_chunks.h"
#include "analyzers/figures/energy_share.h"
#include "analyzers/figures/retention.h"
#include "analyzers/figures/spectrum_heads.h"
#include "analyzers/figures/spectrum_layers.h"
#include "analyzers/figures/spectrum_rope.h"
#include "calibrate/compare/pareto.h"
#include "calibrate/elitekv/elite_map.h"
#include "calibrate/elitekv/elite_trials.h"
#include "calibrate/faedkv/ablation_map_figure.h"
#include "calibrate/faedkv/filter_effect_figure.h"
#include "calibrate/faedkv/perplexity_chunks_figure.h"
#include "calibrate/lagkv/token_scores_figure.h"
#include "draw/axes.h"
#include "eval/latency_figure.h"
#include "tasks/retrieval_map.h"

namespace kvs {
namespace {

using testing::HasSubstr;

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

TEST(Decades, EncloseWhatIsDrawn) {
  Spectrum spectrum = spectrum_of(1, 1, 8, 5);
  spectrum.power[StateKind::kKPre].values[3] = 0.02;
  EXPECT_EQ(decades_of(spectrum, StateKind::kKPost, true), (Decades{-2, 1}));  // shares the keys' scale
  EXPECT_EQ(decades_of(spectrum, StateKind::kV, true), (Decades{0, 1}));
  EXPECT_EQ(decades_of(spectrum_of(1, 1, 8, 0), StateKind::kV, true), (Decades{0, 1}));
}

TEST(IndexTics, AreEvenlySpacedAndNamedByTheirValues) {
  EXPECT_EQ(index_tics(std::vector<std::size_t>{3, 7}, 8), "\"('3' 0, '7' 1)\"");
  std::vector<std::size_t> many(30);
  std::iota(many.begin(), many.end(), std::size_t{0});
  EXPECT_EQ(index_tics(many, 8), "\"('0' 0, '5' 5, '10' 10, '15' 15, '20' 20, '25' 25)\"");
}

TEST(SignedLogScale, KeepsTheSignAndReachesItsLimitAtTheLargest) {
  const std::vector<std::vector<double>> delta{{-0.01, 0.01, 0}, {0.02, 5, 0.005}};
  const SignedLogScale scale(delta);
  EXPECT_DOUBLE_EQ(scale.color(0), 0);
  EXPECT_DOUBLE_EQ(scale.color(5), scale.limit);
  EXPECT_DOUBLE_EQ(scale.color(-5), -scale.limit);
  EXPECT_LT(scale.color(0.5), scale.color(5));
  EXPECT_THAT(scale.tics(), testing::AllOf(HasSubstr("'+1' "), HasSubstr("'+0.1' "), HasSubstr("'0' 0")));
}

TEST(SignedLogScale, NothingButZerosIsAValidScale) {
  const std::vector<std::vector<double>> delta{{0, 0}};
  EXPECT_GT(SignedLogScale(delta).limit, 0);
}

void expect_drawn(const FigureImages& images, const std::string& text) {
  EXPECT_THAT(images.svg, HasSubstr(text));
  EXPECT_THAT(images.svg, HasSubstr("</svg>"));
  EXPECT_GT(images.png.size(), 1000U);
}

TEST(SpectrumFigures, DrawAnyShape) {
  struct Shape {
    std::size_t layers, heads, tokens;
    double power;
  };
  for (const Shape shape : {Shape{1, 1, 1, 1}, Shape{1, 1, 16, 0}, Shape{7, 2, 33, 1e-3}, Shape{2, 20, 64, 4e5}}) {
    const Spectrum spectrum = spectrum_of(shape.layers, shape.heads, shape.tokens, shape.power);
    expect_drawn(render_spectrum_layers(spectrum, "tiny_model", true), "tiny_model");
    expect_drawn(render_spectrum_rope(spectrum, "tiny_model", true), "after RoPE");
    expect_drawn(render_energy_share(spectrum, "tiny_model", true, 10), "lowest 10 % of bins");
    expect_drawn(render_energy_chunks(spectrum, "tiny_model", true), "Energy by chunk");
    const auto pages = render_spectrum_heads(spectrum, "tiny_model", true);
    ASSERT_EQ(pages.size(), 1U);
    expect_drawn(pages[0], "L0 H0");
  }
}

TEST(SpectrumFigures, WithoutSinksTheirTitleSaysSo) {
  expect_drawn(render_spectrum_layers(spectrum_of(2, 1, 16, 1), "m", false), "tokens 4 to 15");
}

TEST(SpectrumFigures, ManyPanelsFillSeveralPages) {
  EXPECT_EQ(spectrum_heads_pages(30, 3), 1U);
  EXPECT_EQ(spectrum_heads_pages(32, 8), 2U);  // 240 panels a page: 30 layers
  EXPECT_EQ(spectrum_heads_pages(2, 500), 2U);
}

TEST(AblationFigure, DrawsOneLayerAndOneChunk) {
  expect_drawn(render_ablation_map({"one", {4}, {{0.5}}}), "one");
  expect_drawn(render_ablation_map({"none", {0, 1}, {{0, 0}, {0, 0}}}), "none");
}

TEST(AblationFigure, DrawsManyLayersAndChunks) {
  AblationMap map{"many", {}, {}};
  for (std::size_t layer = 0; layer < 40; ++layer) {
    map.layers.push_back(layer);
    map.delta.emplace_back(22, 0.01 * static_cast<double>(layer) - 0.1);
  }
  expect_drawn(render_ablation_map(map), "by layer");
}

TEST(PerplexityFigure, DrawsSeriesWithAndWithoutABase) {
  expect_drawn(render_perplexity_chunks({"sweep", {{"in_place", {{8, 40.5}, {22, 39}}}}, 34.4}), "unchanged model");
  const FigureImages without = render_perplexity_chunks({"sweep", {{"in_place", {{8, 40.5}}}}, {}});
  expect_drawn(without, "in_place");
  EXPECT_THAT(without.svg, testing::Not(HasSubstr("unchanged model")));
}

TEST(RetentionFigures, DrawAnyRange) {
  for (const double ratio : {1.0, 1.01, 4.0, 5000.0}) {
    RetentionFigure figure{"kept", {}, {0.5, 0.25}};
    for (const std::size_t panel : {0, 1, 2})
      figure.curves.push_back({"lowest", panel, {{1, 1, 1}, {ratio, ratio / 2, 2 * ratio}}});
    expect_drawn(render_retention(figure), "lowest");
  }
}

TEST(LatencyFigures, DrawOneLengthAndSeveral) {
  expect_drawn(render_latency({"one", {512}, {{"full", {0.5}, {9}}}}), "Decoding");
  expect_drawn(render_latency({"two", {512, 1024}, {{"full", {0.5, 0.6}, {9, 10}}, {"l_2=1", {1, 1}, {5, 5}}}}),
               "l_2=1");
}

TEST(TokenScoreFigures, DrawAnyShape) {
  struct Shape {
    std::size_t layers, heads, tokens;
  };
  for (const Shape shape : {Shape{1, 1, 1}, Shape{1, 2, 64}, Shape{12, 2, 300}}) {
    TokenScores scores;
    scores.heads = shape.heads;
    scores.tokens = shape.tokens;
    scores.relative.assign(shape.layers * shape.heads * shape.tokens, 1.0);
    scores.kept.assign(scores.relative.size(), true);
    std::vector<std::size_t> layers(shape.layers);
    std::iota(layers.begin(), layers.end(), std::size_t{0});
    expect_drawn(render_token_scores("a document", layers, scores), "Share of the tokens kept");
  }
}

TEST(FilterFigure, DrawsRemovedBinsOfSeveralPanels) {
  FilterEffect effect{"filtered", 10, {}, {{2, 4}}};
  for (const char* title : {"Keys", "Values"}) {
    effect.panels.push_back({title, {1, 2, 1, 0, 1, 2}, {1, 1, 1, 1, 1, 1}, {9, 1, 1, 1}, {9, 1, 0, 0}});
  }
  expect_drawn(render_filter_effect(effect), "grey: removed");
}

TEST(FilterFigure, DrawsAConstantChannel) {
  expect_drawn(render_filter_effect({"flat", 0, {{"Keys", {1, 1, 1}, {0, 0, 0}, {3, 0}, {0, 0}}}, {}}), "flat");
}

TEST(EliteFigure, DrawsOnePanelPerHead) {
  const EliteMap map{"picks", "KV head", {0, 5}, 4, {{{0, 2}, {3, 1}}, {{1, 0}, {2, 3}}}};
  const FigureImages images = render_elite_map(map);
  expect_drawn(images, "KV head 1");
  EXPECT_THAT(images.svg, testing::Not(HasSubstr("KV head 2")));
}

TEST(EliteFigure, OfAModelOf7BIsAFileToBeMailed) {
  EliteMap map{"32 layers, 32 heads", "Query head", {}, 64, {}};
  for (std::size_t layer = 0; layer < 32; ++layer) {
    map.layers.push_back(layer);
    map.elite.emplace_back(32, std::vector<std::size_t>{0, layer, 63});
  }
  const FigureImages images = render_elite_map(map);
  expect_drawn(images, "Query head 31");
  EXPECT_LT(images.svg.size(), 300'000U);
  EXPECT_THAT(images.svg, HasSubstr("<image style='image-rendering:optimizeSpeed;image-rendering:pixelated' "));
}

TEST(EliteFigure, DrawsTrialsOfBothFactorizationsBesideTheirReferences) {
  const EliteTrial joint{4, 168, true, 10, std::log(25), std::log(20)},
      separate{8, 144, false, 9, std::log(40), std::log(20)};
  const FigureImages both = render_elite_trials({"trials", {joint, separate}, GqaTrial{2, std::log(10300.2)}});
  for (const char* text : {"J-LRD", "S-LRD", "GQA, 2 heads: 10300 ↑", "full cache: 20", ">168<", ">144<"})
    expect_drawn(both, text);
  const FigureImages alone = render_elite_trials({"trials", {separate}, {}});
  expect_drawn(alone, "S-LRD");
  for (const char* text : {"J-LRD", "GQA"}) EXPECT_THAT(alone.svg, testing::Not(HasSubstr(text)));
}

TEST(ParetoFigure, NamesTheFrontWhereThereIsRoom) {
  ParetoPlot plot{"a front", {{"q8_0", "full", 0.5, 0.0005, true}, {"left", "h2o", 0.25, 0.05, true}}};
  expect_drawn(render_pareto(plot), "left");
  // Of points at one place one name goes to the left and one to the right; there is no room for a third.
  for (const char* name : {"second", "third"}) plot.points.push_back({name, "h2o", 0.25, 0.05, true});
  const FigureImages images = render_pareto(plot);
  EXPECT_THAT(images.svg, HasSubstr("second"));
  EXPECT_THAT(images.svg, testing::Not(HasSubstr("third")));
}

TEST(RetrievalMap, NamesLengthsAndDepths) {
  const FigureImages images =
      render_retrieval_map({"a_model: lagkv", {512, 1024}, {0, 0.5}, {{1, 0.5}, {0, 1}}, {{-0.1, -2}, {-3, 0}}});
  for (const char* text :
       {"a_model: lagkv", ">512<", ">1024<", ">50<", "share found", "log-likelihood a token", ">-3<"})
    EXPECT_THAT(images.svg, HasSubstr(text));
  EXPECT_GT(render_retrieval_map({"one", {8}, {0}, {{0}}, {{0}}}).png.size(), 24U);
}

}  // namespace
}  // namespace kvs
