// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "draw/svg.h"
#include "results/elite_chart.h"
#include "results/faedkv_charts.h"
#include "results/latency.h"
#include "results/panels.h"
#include "results/pareto_chart.h"
#include "results/perturbation.h"
#include "results/retention.h"
#include "results/spectrum_charts.h"
#include "results/task_answers.h"
#include "results/token_scores.h"
#include "results/trace.h"
#include "tests/draw/xml.h"

namespace kvs {
namespace {

using draw::test::parsed;
using draw::test::texts;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kInfinity = HUGE_VAL;

/// The words of a chart's file, which is XML without a number that is none; its page is XML, too.
std::vector<std::string> drawn(const draw::Chart& chart) {
  const std::string svg = draw::svg_file(chart);
  if (const char* folder = std::getenv("KVS_CHARTS")) {  // svg_files.py looks at them, too
    static int number = 0;
    std::ofstream(std::string(folder) + "/" + std::to_string(number++) + ".svg") << svg;
  }
  for (const char* none : {"nan", "inf"}) EXPECT_EQ(svg.find(none), std::string::npos) << none;
  EXPECT_NO_THROW(parsed("<div>" + (draw::page_drawings(chart, "a") + draw::page_legend(chart)).html() + "</div>"));
  return texts(svg);
}

std::vector<std::size_t> first_numbers(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

TEST(PowerChart, DecadesEncloseWhatIsDrawn) {
  EXPECT_EQ(decades_of({5, 0.02, 0}), (Decades{-2, 1}));
  EXPECT_EQ(decades_of({}), (Decades{0, 1}));
  EXPECT_EQ(decades_of({1e-300, 1}), (Decades{-1, 0}));  // rounding has no part in it
  EXPECT_EQ(decades_of({1e-19, 1}), (Decades{-12, 0}));
}

TEST(PowerChart, DrawsAnyShape) {
  for (const std::size_t layers : {1U, 30U})
    for (const double power : {0.0, 1.0, 4e5, 1e300}) {
      StatePower keys{"k_pre", "Keys before RoPE", {1, 2, 4}, {}, {}}, values{"v", "Values", {}, {}, {}};
      keys.power.assign(layers, {power, power / 2, 0});
      keys.dc.assign(layers, power);
      values.power.assign(layers, {});
      EXPECT_THAT(drawn(power_chart("tiny_model", first_numbers(layers), {keys, values}, "bin")),
                  AllOf(Contains("tiny_model"), Contains("Values"), Contains("DC"), Contains("layer")));
    }
}

TEST(PowerChart, KeysShareAScaleThatValuesDoNotHave) {
  const StatePower pre{"k_pre", "a", {1, 2}, {{1, 10}}, {}}, post{"k_post", "b", {1, 2}, {{1e-3, 1}}, {}},
      values{"v", "c", {1, 2}, {{1e4, 1e5}}, {}};
  const draw::Chart chart = power_chart("", {0}, {pre, post, values}, "bin");
  EXPECT_EQ(chart.panels[0].y, chart.panels[1].y);
  EXPECT_FALSE(chart.panels[0].y == chart.panels[2].y);
}

TEST(EnergyChart, HasAMapForEachStateWithAndWithoutDc) {
  SpectrumResult result{.layers = {3, 4}, .low_percents = {10}};
  SpectrumResult::Table table{.heads = {{.low_share = {{0.5}, {0}}}, {.low_share = {{1}, {0.25}}}}};
  result.states[StateKind::kKPre] =
      SpectrumResult::State{{.with_dc = table, .without_dc = table, .chunk_share = {{{0.9, 0.1}, {1, 0}}}}, {}};
  EXPECT_THAT(drawn(energy_share_chart("lowest 10 % of bins", result)),
              AllOf(Contains("Keys before RoPE, with DC"), Contains("Keys before RoPE, without DC"), Contains("4"),
                    Contains("100\u00A0%")));
  EXPECT_THAT(drawn(energy_chunks_chart("Energy by chunk", result)),
              AllOf(Contains("10\u207B\u2076"), Contains("10\u2070")));
}

TEST(CodingGainChart, StacksItsSteps) {
  CodingGainResult result;
  result.measured = CodingGainResult::Measured{};
  CodingGainResult::States& states = result.measured->mean_removed;
  states.states[StateKind::kKPre] = CodingGainResult::State{};
  states.states[StateKind::kKPre]->all.layers = {.mean = {1, 2}, .channels = {0, 0}, .head = {0.5, 0}};
  states.joint = {{}, {}};
  const draw::Chart chart = coding_gain_chart("gain", {0, 1}, result);
  const std::vector<draw::Bars>& bars = chart.panels.at(0).bars;
  ASSERT_EQ(bars.size(), kGainSteps);
  EXPECT_EQ(bars[2].bars[0].low, 1);
  EXPECT_EQ(bars[2].bars[0].high, 1.5);
  EXPECT_TRUE(bars[4].bars.empty());
  EXPECT_GE(chart.panels[0].y.axis.high(), 2);
  EXPECT_THAT(drawn(chart),
              AllOf(Contains("mean subtracted"), Contains("KLT of a head"), Contains("bits a real saved")));
}

TEST(AblationChart, TheScaleKeepsTheSignAndReachesItsLimitAtTheLargest) {
  const std::vector<std::vector<double>> delta{{-0.01, 0.01, 0}, {0.02, 5, 0.005}};
  const SignedLogScale scale(delta);
  EXPECT_DOUBLE_EQ(scale.color(0), 0);
  EXPECT_DOUBLE_EQ(scale.color(5), scale.limit);
  EXPECT_DOUBLE_EQ(scale.color(-5), -scale.limit);
  EXPECT_LT(scale.color(0.5), scale.color(5));
  std::vector<std::string> labels;
  for (const auto& [place, label] : scale.ticks()) {
    labels.push_back(label);
    EXPECT_LE(std::abs(place), 1);
  }
  EXPECT_THAT(labels, testing::ElementsAre("\u2212100\u00A0%", "\u221210\u00A0%", "\u22121.0\u00A0%", "0",
                                           "+1.0\u00A0%", "+10\u00A0%", "+100\u00A0%"));
}

TEST(AblationChart, NothingButZerosIsAValidScale) {
  const std::vector<std::vector<double>> delta{{0, 0}};
  EXPECT_GT(SignedLogScale(delta).limit, 0);
}

TEST(AblationChart, DrawsAnyShape) {
  const auto words = [](const std::string& heading, std::vector<std::size_t> layers,
                        std::vector<std::vector<double>> delta) {
    AblationResult result;
    result.layers = std::move(layers);
    result.delta = std::move(delta);
    for (const auto& row : result.delta) result.interval.emplace_back(row.size());
    return drawn(ablation_chart(heading, result));
  };
  EXPECT_THAT(words("one", {4}, {{0.5}}), AllOf(Contains("one"), Contains("4")));
  EXPECT_THAT(words("none", {0, 1}, {{0, 0}, {0, 0}}), Contains("none"));
  EXPECT_THAT(words("huge", {0}, {{1e308, -1e308, 1e-308}}), Contains("huge"));
  std::vector<std::vector<double>> delta;
  delta.reserve(40);
  for (int layer = 0; layer < 40; ++layer) delta.emplace_back(22, 0.01 * layer - 0.1);
  EXPECT_THAT(words("many", first_numbers(40), delta), AllOf(Contains("36"), Contains("20")));
}

TEST(ChunkSweepChart, DrawsOneCountAndSeveral) {
  FaedkvQuality quality;
  quality.nll_full = 3.5;
  quality.sweep = {{22, 39, 3.7, 0.1}, {8, 40.5, 3.9, 0.1}};
  EXPECT_THAT(drawn(chunk_sweep_chart("sweep", quality)),
              AllOf(Contains("unchanged model"), Contains("8"), Contains("22")));
  quality.sweep->pop_back();
  EXPECT_THAT(drawn(chunk_sweep_chart("sweep", quality)), AllOf(Contains("kept chunks"), Contains("22")));
}

TEST(RetentionChart, DrawsAnyRange) {
  for (const double ratio : {1.0, 1.01, 4.0, 5000.0, 1e147}) {
    RetentionResult result{.shares = {1, 0.25}};
    for (const CutStates states : kCutStates)
      result.curves.push_back(
          {.states = states, .ratio = {1, ratio}, .interval = {std::pair(1.0, 1.0), std::pair(-ratio, 2 * ratio)}});
    EXPECT_THAT(drawn(retention_chart("kept", result)), AllOf(Contains("lowest"), Contains("Keys cut")));
  }
}

TEST(RetentionChart, DrawsARatioBeyondADoubleByItsLogarithm) {
  RetentionResult result{.shares = {1}, .nll_full = 1};
  result.curves.push_back({.states = CutStates::kValues, .nll_mean = {{900}}, .ratio = {{}}, .interval = {{}}});
  const draw::Chart chart = retention_chart("kept", result);
  ASSERT_EQ(chart.panels.size(), 1U);
  EXPECT_GT(chart.panels[0].series.at(0).points.at(0).y, 1e140);
}

TEST(LatencyChart, DrawsOneLengthAndSeveral) {
  EXPECT_THAT(drawn(latency_chart("one", {.lengths = {512}, .caches = {{"full", {0.5}, {9}, {1}, {1}}}})),
              AllOf(Contains("Decoding"), Contains("512")));
  const auto words = drawn(latency_chart(
      "two", {.lengths = {512, 1024},
              .caches = {{"full", {0.5, 0.6}, {9, 10}, {1, 1}, {1, 1}}, {"full", {1, 1}, {5, 5}, {2, 2}, {1, 1}}}}));
  EXPECT_EQ(std::ranges::count(words, "full"), 2);  // of two looks
}

TEST(PerturbationChart, HasARowForEachGroupAndEndsAtOne) {
  const SimilarityCurve curve{{0.99, 0.98}, {std::pair(0.9, 1.2), {}}};
  PerturbationResult result{.layers = {0, 7}, .documents = {2, 1, 0}};
  for (const StateKind state : kPerturbedStates)
    result.states[state] = PerturbationResult::Groups{{{curve, curve, curve}}, {{curve, curve, curve}}};
  const draw::Chart chart = perturbation_chart("a _name_", result);
  EXPECT_EQ(chart.panels.at(2).row, 1U);
  EXPECT_EQ(chart.panels[0].series[0].points[0].interval->second, 1);
  EXPECT_THAT(drawn(chart), AllOf(Contains("a _name_"), Contains("Values, tokens moved"), Contains("lower half")));
  result.documents.other_count = 0;
  EXPECT_EQ(perturbation_chart("", result).panels.size(), 2U);
}

TEST(TokenScoreChart, DrawsAnyShape) {
  for (const std::size_t layers : {1U, 2U, 48U})
    for (const std::size_t tokens : {1U, 64U, 65U}) {
      TokenScoresResult result{.first_token = 16, .tokens_scored = tokens};
      for (std::size_t layer = 0; layer < layers; ++layer) {
        result.layers.push_back(layer);
        result.relative_score.emplace_back(2, std::vector<double>(tokens, 1));
        result.kept.push_back({{16}, {}});
      }
      for (const ScoreRows rows : {ScoreRows::kHeads, ScoreRows::kLayers}) {
        const draw::Chart chart = token_score_chart("a document", result, rows);
        EXPECT_THAT(drawn(chart), Contains("Share of the tokens kept"));
        ASSERT_EQ(chart.panels.at(1).cells->places.size(), rows == ScoreRows::kHeads ? 2 * layers : layers);
        EXPECT_EQ(chart.panels[1].cells->places[0].size(), tokens > 64 ? 33 : tokens);
        EXPECT_EQ(chart.panels[1].cells->places[0][0], (rows == ScoreRows::kHeads ? 1 : 0.5) / (tokens > 64 ? 2 : 1));
      }
    }
}

TEST(FilterChart, DrawsRemovedBinsOfSeveralPanels) {
  FilterEffect effect{"filtered", 10, {}, {{2, 4}}};
  for (const char* title : {"Keys", "Values"})
    effect.panels.push_back({title, {1, 2, 1, 0, 1, 2}, {1, 1, 1, 1, 1, 1}, {9, 1, 1, 1}, {9, 1, 0, 0}});
  const draw::Chart chart = filter_chart(effect);
  EXPECT_EQ(chart.panels.size(), 4U);
  EXPECT_THAT(drawn(chart), AllOf(Contains("frequency bin (grey: removed)"), Contains("before"), Contains("after")));
}

TEST(FilterChart, DrawsAConstantChannel) {
  EXPECT_THAT(drawn(filter_chart({"flat", 0, {{"Keys", {1, 1, 1}, {0, 0, 0}, {3, 0}, {0, 0}}}, {}})), Contains("flat"));
  EXPECT_THAT(drawn(filter_chart({"zero", 0, {{"Keys", {0}, {0}, {0}, {0}}}, {}})), Contains("zero"));
}

TEST(EliteChart, DrawsOnePanelForEachHead) {
  const EliteMap map{"picks", "KV head", {0, 5}, 4, {{{0, 2}, {3, 1}}, {{1, 0}, {2, 3}}}};
  const draw::Chart chart = elite_chart(map);
  EXPECT_EQ(chart.panels.size(), 2U);
  EXPECT_EQ(chart.panels[0].cells->places[0][0], 0);  // the first pick
  EXPECT_EQ(chart.panels[0].cells->places[0][2], 1);  // the last
  EXPECT_TRUE(std::isnan(chart.panels[0].cells->places[0][1]));
  EXPECT_THAT(drawn(chart), AllOf(Contains("KV head 1"), Contains("order of the pick")));
  EXPECT_EQ(elite_share_chart(map).panels[0].cells->places[0][3], 0.5);
}

TEST(EliteChart, OfAModelOf7BIsAFileToBeMailed) {
  EliteMap map{"32 layers, 32 heads", "Query head", first_numbers(32), 64, {}};
  for (const std::size_t layer : map.layers) map.elite.emplace_back(32, std::vector<std::size_t>{0, layer, 63});
  const std::string svg = draw::svg_file(elite_chart(map));
  EXPECT_THAT(svg, AllOf(HasSubstr("Query head 31"), HasSubstr("shape-rendering=\"crispEdges\"")));
  EXPECT_LT(svg.size(), 300'000U);
}

TEST(EliteSweepChart, DrawsBothFactorizationsBesideTheirReferences) {
  const EliteSweep::Trial joint{4, 168, true, std::log(25)}, separate{8, 144, false, std::log(40)};
  const auto both = drawn(elite_sweep_chart({"trials", {joint, separate}, std::log(20), 2, std::log(10300.2)}));
  for (const char* text : {"J-LRD", "S-LRD", "GQA, 2 heads: 10,300 \u2191", "full cache: 20", "168", "144"})
    EXPECT_THAT(both, Contains(text));
  const auto alone = drawn(elite_sweep_chart({"trials", {separate}, std::log(20)}));
  EXPECT_THAT(alone, AllOf(Contains("S-LRD"), Not(Contains("J-LRD")), Not(Contains(HasSubstr("GQA")))));
  EXPECT_THAT(drawn(elite_sweep_chart({"far", {{4, 8, true, 900}}, 1, 1, 800})), Contains(HasSubstr("e^800")));
}

TEST(RetrievalChart, HasTheMeansByDepthAndLength) {
  std::vector<TaskResult> results;
  for (const double depth : {1.0, 0.0})
    for (const std::size_t length : {2000U, 512U, 512U}) {
      TaskResult& result = results.emplace_back();
      result.length = length;
      result.depth = depth;
      result.answer.tokens = 4;
      result.answer.log_likelihood = -static_cast<double>(length);
      result.answer.scores.partial = results.size() % 2 == 0 ? depth : 0.5;
    }
  const draw::Chart chart = retrieval_chart("a_model: lagkv", results);
  ASSERT_EQ(chart.panels.size(), 2U);
  const draw::Cells &share = *chart.panels[0].cells, &likelihood = *chart.panels[1].cells;
  EXPECT_THAT(share.places[1], testing::ElementsAre(0.75, 0.5));  // depth 1: results 2 and 3, and 1
  EXPECT_EQ(share.tooltip[1][0], "75\u00A0% of the answer, 2 questions");
  EXPECT_EQ(likelihood.places[0][1], 0);  // the least
  EXPECT_EQ(likelihood.tooltip[0][0], "\u2212128");
  for (const char* text : {"a_model: lagkv", "512", "2,000", "100\u00A0%", "share found", "log-likelihood a token"})
    EXPECT_THAT(drawn(chart), Contains(text));
  for (TaskResult& result : results) result.full = result.answer;
  EXPECT_THAT(drawn(retrieval_chart("", results)), Contains("share found, full cache"));
  results[0].depth.reset();
  EXPECT_TRUE(retrieval_chart("", results).panels.empty());
}

TEST(TraceChart, StepsDownWherePromptsDiverge) {
  TraceQuality quality{
      .curves = {.zeros = 1, .histogram = {{.bin = -8, .tokens = 3}}, .parts = {{.end = 9, .kl = 0.01}}}};
  const auto sample = [](std::size_t same) { return TraceSample{.tokens = 9, .same_tokens = same, .own_tokens = 9}; };
  quality.samples = {sample(3), sample(9), sample(3), sample(7)};
  const draw::Chart chart = trace_chart("a_model: kivi", quality);
  ASSERT_EQ(chart.panels.size(), 3U);
  std::vector<std::pair<double, double>> points;
  for (const draw::Point& point : chart.panels[0].series[0].points) points.emplace_back(point.x, point.y);
  EXPECT_THAT(points, testing::ElementsAre(std::pair(0.0, 1.0), std::pair(3.0, 0.5), std::pair(7.0, 0.25)));
  for (const char* text : {"a_model: kivi", "share of the prompts", "generated tokens", "generated token"})
    EXPECT_THAT(drawn(chart), Contains(text));
  // The full cache: nothing diverges.
  quality.curves = {.zeros = 4, .parts = {{.end = 9}}};
  quality.samples = {sample(9)};
  EXPECT_THAT(drawn(trace_chart("", quality)), Contains("Prompts that have not diverged"));
}

TEST(IntervalPanel, ShowsZeroAndCutsWideIntervals) {
  const std::vector<IntervalRow> rows{{"a", 0.1, std::pair(0.05, 9.0), "tooltip"}, {"b", 0.2, {}, "tooltip"}};
  const draw::Panel panel = interval_panel("", "Changes", "d", "change", rows);
  EXPECT_LE(panel.x.axis.low(), 0);
  EXPECT_LT(panel.x.axis.high(), 1);
  EXPECT_THAT(drawn({.panels = {panel}, .plot_height = interval_height(2)}),
              AllOf(Contains("a"), Contains("b"), Contains("0\u00A0%")));
  EXPECT_EQ(interval_words(std::pair(0.9, 1.1)), " (95\u00A0%: 0.900 to 1.10)");
}

TradePoint trade_point(const std::string& label, double bytes, double loss) {
  TradePoint point{.label = label, .method = label, .tooltip = {}, .interval = {}};
  point.bytes = bytes;
  point.loss = loss;
  return point;
}

TEST(ParetoChart, TheFrontIsWhatNoOtherBeatsInBothBytesAndLoss) {
  std::vector<TradePoint> points{trade_point("small", 0.25, 0.3), trade_point("beaten", 0.5, 0.4),
                                 trade_point("good", 0.5, 0.1), trade_point("full", 1, 0),
                                 trade_point("as good", 0.5, 0.1)};
  mark_pareto_front(points);
  std::vector<std::string> front;
  for (const TradePoint& point : points)
    if (point.pareto_front) front.push_back(point.label);
  EXPECT_EQ(front, (std::vector<std::string>{"small", "good", "full", "as good"}));
}

TEST(ParetoChart, LossesBelowTheScaleLieAtTheBottomWhichSaysSo) {
  const draw::Chart chart =
      pareto_chart("", "", perplexity_scale(), {trade_point("none", 0.5, 0), trade_point("gain", 0.25, -0.01)});
  for (const draw::Series& series : chart.panels[0].series)
    for (const draw::Point& point : series.points) EXPECT_EQ(point.y, 1e-3);
  EXPECT_THAT(drawn(chart), Contains("\u2264\u00A00.1\u00A0%"));
}

TEST(ParetoChart, NoTwoMethodsLookAlike) {
  constexpr int kMethods = 30;
  std::vector<TradePoint> points;
  points.reserve(kMethods);
  for (int n = 0; n < kMethods; ++n) points.push_back(trade_point("method " + std::to_string(n), 0.5, 0.1));
  const draw::Chart chart = pareto_chart("", "", divergence_scale(), points);
  for (std::size_t a = 0; a < points.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_FALSE(chart.panels[0].series[a].look == chart.panels[0].series[b].look);
}

TEST(ParetoChart, AMethodKeepsItsLookWhateverStandsBesideIt) {
  const std::vector<std::string> order{"full", "h2o", "lagkv"};
  const auto look = [&](const std::vector<TradePoint>& points) {
    const draw::Chart chart = pareto_chart("", "", divergence_scale(), points, order);
    for (const draw::Series& series : chart.panels[0].series)
      if (series.name == "lagkv") return series.look;
    return draw::SeriesLook{};
  };
  const TradePoint lagkv = trade_point("lagkv", 0.25, 0.1), other = trade_point("new", 0.25, 0.1);
  EXPECT_EQ(look({lagkv}), look({other, trade_point("full", 1, 0.1), lagkv}));
  EXPECT_EQ(look({lagkv}), draw::series_look(2));
}

TEST(ParetoChart, ExplainsHollowMarksWhereThereAreAny) {
  TradePoint stored = trade_point("lagkv + q8_0", 0.2, 0.1);
  stored.stored = true;
  const auto words = [](const std::vector<TradePoint>& points) {
    return drawn(pareto_chart("", "", divergence_scale(), points));
  };
  EXPECT_THAT(words({trade_point("lagkv", 0.25, 0.1), stored}), Contains("rows in a storage type"));
  EXPECT_THAT(words({trade_point("lagkv", 0.25, 0.1)}), Not(Contains("rows in a storage type")));
}

TEST(ParetoChart, TellsAPointAndNamesTheFront) {
  TradePoint point = trade_point("lagkv", 0.25, 0.03), far = trade_point("far", 0.9, kInfinity);
  point.tooltip = "a <little> more";
  point.pareto_front = true;
  const draw::Chart chart = pareto_chart("a front", "", divergence_scale(), {point, far});
  EXPECT_THAT(draw::page_drawings(chart, "plot").html(),
              HasSubstr("lagkv: 25\u00A0% of the bytes, a &lt;little&gt; more"));
  const auto words = drawn(chart);
  EXPECT_EQ(std::ranges::count(words, "lagkv"), 2);  // in the legend, and at its point
  EXPECT_THAT(words, Contains("KL divergence from the full cache, nats a token"));
}

}  // namespace
}  // namespace kvs
