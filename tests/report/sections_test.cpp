// SPDX-License-Identifier: Apache-2.0
#include "export/report/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/report/outputs.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ReportSections, AreEmptyWithoutTheirResults) {
  const ReportInputs inputs = read_outputs({"cost.json"});
  for (const auto make : {recommendation_section, comparison_section, evaluations_section, tasks_section,
                          spectra_section, coding_gain_section, elite_section, ablation_section, configs_section,
                          allocation_section, perturbation_section, retention_section, scores_section, latency_section})
    EXPECT_TRUE(make(inputs).body.empty());
  EXPECT_FALSE(cost_section(inputs).body.empty());
}

TEST(ReportSections, RecommendationsAreTheirScreen) {
  const Section section = recommendation_section(read_outputs({"recommendation.json"}));
  EXPECT_THAT(section.findings, ElementsAre(AllOf(HasSubstr("llama.cpp: Use q5_0: 4.06 MB at 512 tokens"),
                                                  HasSubstr("34.4 % of 11.8 MB (fewest bytes"))));
  const std::string html = section.body.html();
  EXPECT_THAT(html, AllOf(HasSubstr("<code>-ctk q5_0 -ctv q5_0 -fa on</code>"), HasSubstr("GGML_CUDA_FA_ALL_QUANTS"),
                          HasSubstr("93.2\u00A0% (88.2\u00A0% to 98.1\u00A0%)"),
                          HasSubstr("Measured on 2 documents of 512 tokens, the last 511 of each scored.")));
  EXPECT_EQ(count(html, ">do not use<"), 3U);
  EXPECT_EQ(count(html, "class=\"front-row\""), 1U);
}

TEST(ReportSections, NoRecommendationIsAFinding) {
  Json json = output_json("recommendation.json");
  for (const char* member : {"chosen", "smaller", "use"}) json[member] = nullptr;
  const Section section = recommendation_section(changed_output(OutputKind::kRecommendation, json));
  EXPECT_THAT(section.findings, ElementsAre(HasSubstr("llama.cpp: Stay at 16 bits: no cache of llama.cpp has a KL")));
  EXPECT_THAT(section.body.html(), AllOf(HasSubstr(">least KL<"), Not(HasSubstr("Flags"))));
}

TEST(ReportSections, ComparedCachesStandBesideTheBestOfTheirBudget) {
  const std::string html = comparison_section(read_outputs({"comparison.json"})).body.html();
  EXPECT_THAT(html,
              AllOf(HasSubstr("KL × best"), HasSubstr("×\u00A080.0 (52.0 to 123)"), HasSubstr(">Caches scored on ")));
  EXPECT_EQ(count(html, ">Documents<"), 1U);  // of calibrated settings; the captions of the others say how many
}

TEST(ReportSections, LayersWithTheirOwnRopeAreNamed) {
  Json json = output_json("spectrum.json");
  Json& model = json["model"];
  model["layers"] = 5;
  model["layers_without_cache"] = {1};
  const Json plain{{"theta", 1e4}, {"rotary_dim", 4}, {"scaling", nullptr}};
  Json other = plain, none = plain;
  other["theta"] = 1e6;
  none["scaling"] = {{"rope_type", "none"}};
  model["rope"]["kinds"] = {plain, other, none};
  model["rope"]["layer_kinds"] = {0, 1, 0, 0, 2};
  const std::string html = model_section(changed_output(OutputKind::kSpectrum, json)).body.html();
  EXPECT_THAT(html, AllOf(HasSubstr("5, 1 of them without a KV cache"), HasSubstr("RoPE of layers 0, 2, 3<"),
                          HasSubstr("base 10"), Not(HasSubstr("1,000,000")), HasSubstr("RoPE of layer 4<"),
                          HasSubstr("none: keys do not turn")));
}

/// A second comparison of the model with the speeds of each, in two folders.
ReportInputs two_comparisons() {
  const Json comparison = output_json("comparison.json"), speeds = output_json("comparison_speed.json");
  Json other_speeds = speeds, other_config = output_json("elitekv.json");
  other_speeds["configurations"][0]["decode_tokens_per_second"] = 77.5;
  other_config["calibration"]["command"] = "the other command";
  return {.outputs = {{"a/c.json", "a/c.json", OutputKind::kComparison, comparison},
                      {"a/c_speed.json", "a/c_speed.json", OutputKind::kSpeeds, speeds},
                      {"b/c.json", "b/c.json", OutputKind::kComparison, comparison},
                      {"b/c_speed.json", "b/c_speed.json", OutputKind::kSpeeds, other_speeds},
                      {"b/configs/elitekv.json", "b/configs/elitekv.json", OutputKind::kConfig, other_config}},
          .skipped = {}};
}

TEST(ReportSections, AComparisonHasItsOwnSpeedsAndConfigs) {
  ReportInputs inputs = two_comparisons();
  for (const std::size_t of : {0U, 2U}) inputs.outputs[of].json["best"][0]["configuration"] = 1;
  const Section section = comparison_section(inputs);
  const std::string html = section.body.html(), first = html.substr(0, html.find("<h3>b/c.json")),
                    second = html.substr(first.size());
  EXPECT_THAT(first, AllOf(HasSubstr("a/c.json"), HasSubstr(">12.5<"), Not(HasSubstr(">77.5<")),
                           Not(HasSubstr("the other command"))));
  EXPECT_THAT(second, AllOf(HasSubstr(">77.5<"), Not(HasSubstr(">12.5<")), HasSubstr("the other command")));
  EXPECT_THAT(section.findings, Contains(HasSubstr("b/c.json: At half of the bytes")));
}

TEST(ReportSections, SpeedsOfARunBeforeAreNotAComparisons) {
  ReportInputs inputs = two_comparisons();
  inputs.outputs[2].json["timed"] = false;
  EXPECT_THAT(comparison_section(inputs).body.html(), AllOf(HasSubstr(">12.5<"), Not(HasSubstr(">77.5<"))));
}

TEST(ReportSections, IntervalsOverPartsOfDocumentsSaySo) {
  Json json = output_json("comparison.json");
  for (Json& cell : json["configurations"]) {
    if (!cell["ratio"].is_null()) cell["ratio"]["over"] = "parts";
    for (const char* change : {"over_standard", "over_best"})
      if (!cell[change].is_null()) cell[change]["ppl"]["over"] = cell[change]["kl"]["over"] = "parts";
  }
  const std::string parts = comparison_section(changed_output(OutputKind::kComparison, json)).body.html();
  EXPECT_THAT(parts,
              AllOf(Not(HasSubstr("over documents")), HasSubstr("interval of the change, over parts of documents"),
                    HasSubstr("paired over parts of documents"), HasSubstr("+0.25\u00A0% (parts)"),
                    HasSubstr("(52.0 to 123) (parts)")));
  json["configurations"][0]["ratio"]["over"] = "documents";
  EXPECT_THAT(comparison_section(changed_output(OutputKind::kComparison, json)).body.html(),
              AllOf(HasSubstr("over documents, or where it says so over their parts"), HasSubstr("+0.25\u00A0%<"),
                    HasSubstr("+7.0\u00A0% (parts)<")));
}

TEST(ReportSections, CellsOfFewerDocumentsWereStoppedOnlyWhereTheyAllWere) {
  Json json = output_json("comparison.json");
  EXPECT_THAT(comparison_section(changed_output(OutputKind::kComparison, json)).body.html(),
              HasSubstr("Stopped after 2 documents: "));
  json["configurations"][3]["stopped"] = false;
  EXPECT_THAT(comparison_section(changed_output(OutputKind::kComparison, json)).body.html(),
              AllOf(HasSubstr("Scored on 2 documents: "), Not(HasSubstr("Stopped after"))));
}

TEST(ReportSections, ACellWithoutABudgetIsShownWithout) {
  Json json = output_json("comparison.json");
  json["configurations"][5]["budget"] = 0;
  const std::string html = comparison_section(changed_output(OutputKind::kComparison, json)).body.html();
  EXPECT_THAT(html.substr(html.find("Not scored")), Not(HasSubstr(">0.0\u00A0%")));
  json["configurations"][5]["budget"] = -0.5;
  EXPECT_THROW(comparison_section(changed_output(OutputKind::kComparison, json)), Error);
}

TEST(ReportSections, SpectraHaveACurveForEachLayerAndAMapForEachState) {
  const std::string html = spectra_section(read_outputs({"spectrum.json"})).body.html();
  EXPECT_EQ(count(html, "<path class=\"curve "), 3U * 4U);  // k_pre, k_post, v of four layers
  EXPECT_EQ(count(html, "class=\"map\""), 6U);              // shares with and without DC
  EXPECT_THAT(html, AllOf(HasSubstr(">layer 3<"), HasSubstr("kvspectrum spectrum --model")));
}

TEST(ReportSections, SpectraHaveAMapOfTheSharesByChunk) {
  Json spectrum = output_json("spectrum.json");
  for (auto& state : spectrum["states"]) state["all_tokens"]["chunk_share"] = std::vector<Json>(4, {0.75, 0.25, 0});
  const std::string html = spectra_section(changed_output(OutputKind::kSpectrum, spectrum)).body.html();
  EXPECT_EQ(count(html, "data-values=\"75\u00A0%;25\u00A0%;0\u00A0%|"), 3U);
  spectrum["states"]["v"]["all_tokens"]["chunk_share"][1] = {1};
  EXPECT_THROW(spectra_section(changed_output(OutputKind::kSpectrum, spectrum)), Error);
}

TEST(ReportSections, SpectraOfOlderFilesHaveNoCurves) {
  Json spectrum = output_json("spectrum.json");
  for (auto& state : spectrum["states"])
    for (const char* newer : {"curve", "chunk_share"}) state["all_tokens"].erase(newer);
  const std::string html = spectra_section(changed_output(OutputKind::kSpectrum, spectrum)).body.html();
  EXPECT_EQ(count(html, "<path class=\"curve "), 0U);
  EXPECT_EQ(count(html, "class=\"map\""), 6U);
}

TEST(ReportSections, CodingGainsHaveALineForEachStepAndTheVerdicts) {
  const Section section = coding_gain_section(read_outputs({"spectrum.json"}));
  const std::string html = section.body.html();
  EXPECT_EQ(count(html, "class=\"point"), 2U * 6U * 4U);  // six steps of keys and of values in four layers
  EXPECT_EQ(count(html, "<tr"), 1U + 2U * 3U);
  EXPECT_THAT(html, HasSubstr("keys and values, layer 3: "));
  ASSERT_EQ(section.findings.size(), 7U);
  EXPECT_THAT(section.findings[3], HasSubstr("A transform across channels can pay"));
  Json older = output_json("spectrum.json");
  older.erase("coding_gain");
  EXPECT_TRUE(coding_gain_section(changed_output(OutputKind::kSpectrum, older)).body.empty());
  Json few = output_json("spectrum.json");  // too few tokens for a KLT of both
  for (Json& gain : few["coding_gain"]["mean_removed"]["joint"]) gain = nullptr;
  EXPECT_EQ(count(coding_gain_section(changed_output(OutputKind::kSpectrum, few)).body.html(), "class=\"point"),
            2U * 5U * 4U);
}

TEST(ReportSections, EliteMapsHaveTheOrderOfPicks) {
  Json config = output_json("elitekv.json");
  const std::size_t first = config["parameters"]["elite"][0][0][0];
  const std::string html = elite_section(changed_output(OutputKind::kConfig, config)).body.html();
  EXPECT_EQ(count(html, "class=\"map\""), 1U + 2U);  // all heads, and each of two
  // Head 0's map: its first layer's values are its picks by chunk.
  const std::string head = html.substr(html.find("Head 0"));
  const std::size_t at = head.find("data-values=\"") + 13;
  std::string values = head.substr(at, head.find('|', at) - at);
  for (std::size_t chunk = 0; chunk < first; ++chunk) values.erase(0, values.find(';') + 1);
  EXPECT_TRUE(values.starts_with("pick 1")) << values;
}

TEST(ReportSections, EliteSizesThatWereTriedHaveATable) {
  Json config = output_json("elitekv.json");
  EXPECT_THAT(elite_section(changed_output(OutputKind::kConfig, config)).body.html(), Not(HasSubstr("Sizes that")));
  Json& calibration = config["calibration"];
  const Json trial{{"r", 2},      {"d_ckv", 8},      {"factorization", "joint"}, {"parameters", 100},
                   {"ppl", 20.0}, {"ppl_full", 16.0}};
  Json known = trial, failed = trial;
  known.update({{"nll_mean", std::log(30.0)}, {"nll_error", 0.1}, {"nll_full", std::log(20.0)}});
  failed.update({{"ppl", nullptr}, {"nll_mean", nullptr}, {"error", "found NaN or infinity"}});
  calibration["trials"] = {trial, known, failed};
  calibration["verdict"] = "J-LRD, r 2, d_ckv 8 chosen, better than every other";
  const Section section = elite_section(changed_output(OutputKind::kConfig, config));
  const std::string html = section.body.html(), table = html.substr(html.find("Sizes that were tried"));
  EXPECT_EQ(count(table.substr(0, table.find("</table>")), "<tr"), 1U + 3U);
  EXPECT_EQ(count(html, "J-LRD, r 2, d_ckv 8: perplexity "), 2U);  // the one that failed is not drawn
  EXPECT_THAT(table, AllOf(HasSubstr("20.00<"), HasSubstr("+25\u00A0%"), HasSubstr("30.00 \u00B1\u00A03.0<"),
                           HasSubstr("+50\u00A0%"), HasSubstr("NaN or infinity")));
  EXPECT_THAT(section.findings, Contains("changed.json: J-LRD, r 2, d_ckv 8 chosen, better than every other."));
  calibration["trials"][0]["r"] = "two";
  EXPECT_THROW(elite_section(changed_output(OutputKind::kConfig, config)), Error);
}

TEST(ReportSections, AblationRanksChunksAndShowsIntervals) {
  Json config = output_json("faedkv.json");
  Json& ablation = config["calibration"]["ablation"];
  ablation["delta"][2][1] = 0.5;
  ablation["interval"][2][1] = {0.25, 0.75};
  for (Json& row : ablation["interval"])
    for (Json& interval : row)
      if (interval != Json({0.25, 0.75})) interval = {-1, 1};
  const Section section = ablation_section(changed_output(OutputKind::kConfig, config));
  EXPECT_THAT(
      section.findings,
      ElementsAre("Of 16 frequency chunks the one that matters most is chunk 1 of layer 2: without it perplexity "
                  "changes by +50\u00A0%. The interval is above zero for 1 of them."));
  EXPECT_THAT(section.body.html(), HasSubstr("+50\u00A0% (95\u00A0%: +25 to +75\u00A0%)"));
  EXPECT_EQ(count(section.body.html(), "class=\"whisker "), 16U);
}

TEST(ReportSections, AblationSaysWhereTheWorstChunkIsNotToldFromZero) {
  Json config = output_json("faedkv.json");
  config["calibration"]["ablation"]["delta"][2][1] = 0.5;
  config["calibration"]["ablation"]["interval"][2][1] = {-0.25, 1.25};
  EXPECT_THAT(ablation_section(changed_output(OutputKind::kConfig, config)).findings[0],
              HasSubstr("changes by +50\u00A0% (not told from 0)."));
}

TEST(ReportSections, AblationOfOneDocumentHasNoIntervals) {
  Json config = output_json("faedkv.json");
  for (Json& row : config["calibration"]["ablation"]["interval"])
    for (Json& interval : row) interval = nullptr;
  const Section section = ablation_section(changed_output(OutputKind::kConfig, config));
  EXPECT_EQ(count(section.body.html(), "class=\"whisker "), 0U);
  EXPECT_THAT(section.findings[0], HasSubstr("too few to rank the chunks"));
}

TEST(ReportSections, TasksAreMapsByDepthAndLength) {
  const Section section = tasks_section(read_outputs({"needle.json"}));
  EXPECT_THAT(section.body.html(), HasSubstr("data-rows=\"0\u00A0%;100\u00A0%\" data-columns=\"512;1,024\""));
  EXPECT_THAT(section.body.html(),
              HasSubstr("50\u00A0% of the answer, 1 question;25\u00A0% of the answer, 1 question|"));
  EXPECT_THAT(section.findings, ElementsAre("With lagkv 50\u00A0% of the questions of needle are answered, on "
                                            "40\u00A0% of the bytes; with the full cache "
                                            "100\u00A0%."));
}

TEST(ReportSections, TasksSayWhatAllSequencesShare) {
  Json task = output_json("needle.json");
  task["shared_bytes"] = 35'000'000;
  const Section section = tasks_section(changed_output(OutputKind::kTask, task));
  EXPECT_THAT(section.body.html(), HasSubstr("40.0\u00A0% + 35.0\u00A0MB shared"));
  EXPECT_THAT(section.findings[0], HasSubstr("on 40\u00A0% of the bytes and 35.0\u00A0MB that all sequences share; "));
}

TEST(ReportSections, ATaskThatTheFullCacheFailsIsSaidToBeOne) {
  Json task = output_json("needle.json");
  task["fails_with_full_cache"] = true;
  EXPECT_THAT(tasks_section(changed_output(OutputKind::kTask, task)).findings[0],
              HasSubstr("misses most questions of needle with the full cache"));
}

TEST(ReportSections, TracesSayHowLongTheTextStaysTheSame) {
  const Section section = traces_section(read_outputs({"streaming.trace.json"}));
  EXPECT_THAT(
      section.findings,
      ElementsAre("With streaming the model's own texts keep the same 9.33 tokens on average before the first "
                  "other one, on 62.5\u00A0% of the bytes; 33.3\u00A0% of the prompts do not diverge (3 prompts, "
                  "traces of at most 16 tokens at temperature 0.75)."));
  for (const char* shown : {"0.146 (0 to 0.383)", "87.5\u00A0%", "9.33 (0 to 24.5)",
                            "after 4 tokens: 66.7\u00A0% of the prompts", "after 8 tokens: 33.3\u00A0% of the prompts"})
    EXPECT_THAT(section.body.html(), HasSubstr(shown));
}

TEST(ReportSections, EvaluationsOfTheSameTokensShareATable) {
  Json other = output_json("lagkv.eval.json");
  other["window"] = 64;
  ReportInputs inputs = read_outputs({"full.eval.json", "lagkv.eval.json"});
  EXPECT_EQ(count(evaluations_section(inputs).body.html(), "<table>"), 1U);
  inputs.outputs.push_back({"other.json", "other.json", OutputKind::kEvaluation, other});
  EXPECT_EQ(count(evaluations_section(inputs).body.html(), "<table>"), 2U);
}

TEST(ReportSections, EvaluationsShowTheTailOfTheDivergence) {
  const std::string html = evaluations_section(read_outputs({"lagkv.eval.json"})).body.html();
  for (const char* cell : {"1.93", "2.41", "2.40", "50.0\u00A0% \u00B1\u00A09.0"}) EXPECT_THAT(html, HasSubstr(cell));
  EXPECT_THAT(html, AllOf(HasSubstr("id=\"divergence-0-0"), HasSubstr("120 tokens, 71.4\u00A0%"),
                          HasSubstr("tokens 18 to 31: 0.420\u00A0nats")));
}

TEST(ReportSections, BudgetsSayWhatWonOnDocumentsHeldOut) {
  const Section section = allocation_section(read_outputs({"freqkv.json"}));
  EXPECT_THAT(
      section.findings,
      ElementsAre(AllOf(HasSubstr("on 3 documents held out the least perplexity is that of the paper's setting: "
                                  "\u22128.5\u00A0% (95\u00A0%: \u221228 to +16\u00A0%) against sizes by layer "
                                  "(not told from 0); \u22128.7\u00A0% (95\u00A0%: \u221215 to "
                                  "\u22122.0\u00A0%) against one size for all layers."))));
  const std::string html = section.body.html();
  EXPECT_EQ(count(html, "class=\"whisker "), 2U);
  EXPECT_EQ(count(html, "<table>"), 2U);
  EXPECT_THAT(html, AllOf(HasSubstr("settings screened"), Not(HasSubstr("rotate\u00A0on"))));  // nobody varied it
}

TEST(ReportSections, BudgetsSayWhereSettingsAreTheSameOrWereNotChecked) {
  Json config = output_json("freqkv.json");
  Json& allocation = config["calibration"]["allocation"];
  allocation["contenders"].erase(2);
  allocation["contenders"][1]["parameters"] = allocation["contenders"][0]["parameters"];
  Section section = allocation_section(changed_output(OutputKind::kConfig, config));
  EXPECT_THAT(section.findings[0], HasSubstr("the paper's setting: the same settings as sizes by layer."));
  EXPECT_EQ(count(section.body.html(), "class=\"whisker "), 0U);
  allocation["held_documents"] = 0;
  section = allocation_section(changed_output(OutputKind::kConfig, config));
  EXPECT_THAT(section.findings[0], HasSubstr("no documents were held out"));
}

TEST(ReportSections, BudgetsShowErrorsAndSettingsThatFailed) {
  Json config = output_json("freqkv.json");
  Json& allocation = config["calibration"]["allocation"];
  allocation["contenders"][0].update({{"nll_mean", std::log(30.0)}, {"nll_error", 0.1}});
  Json& trial = allocation["trials"][0];
  trial["divergence"] = nullptr;
  trial["error"] = "found NaN or infinity, expected finite activations";
  EXPECT_THAT(allocation_section(changed_output(OutputKind::kConfig, config)).body.html(),
              AllOf(HasSubstr("30.00 \u00B1\u00A03.0<"), HasSubstr(">NaN or infinity<")));
}

TEST(ReportSections, SynonymsHaveADrawingForEachStateAndGroup) {
  const Section section = perturbation_section(read_outputs({"perturb.json"}));
  EXPECT_EQ(count(section.body.html(), "<path class=\"curve "), 3U * 2U * 2U);
  EXPECT_EQ(count(section.body.html(), "class=\"point"), 4U * 3U * 2U * 2U);  // of four layers
  EXPECT_THAT(section.findings,
              ElementsAre(HasSubstr("Where tokens stay (3 documents), the similarity of a text and its copy with "
                                    "1\u00A0% of its words replaced by synonyms is 0.978 in the lower half"),
                          HasSubstr("Where tokens move (9 documents)")));
  Json alone = output_json("perturb.json");
  alone["documents"]["same_count"] = 0;
  for (Json& state : alone["states"]) state.erase("same_count");
  EXPECT_EQ(perturbation_section(changed_output(OutputKind::kPerturbation, alone)).findings.size(), 1U);
}

TEST(ReportSections, KeptBandsSayWhatHalfOfTheSpectrumIsWorth) {
  const Section section = retention_section(read_outputs({"retain.json"}));
  EXPECT_EQ(count(section.body.html(), "<path class=\"curve "), 2U * 3U);
  EXPECT_THAT(section.findings,
              ElementsAre(AllOf(HasSubstr("of keys: \u00D7 0.918 (not told from 1) with the lowest 50\u00A0%"),
                                HasSubstr("of keys and values: \u00D7 0.923"))));
}

TEST(ReportSections, LatencyIsToldAtTheGreatestLength) {
  Json latency = output_json("latency.json");
  latency["caches"][1]["decode_ratio"] = {1, 1, 0.5};
  const Section section = latency_section(changed_output(OutputKind::kLatency, latency));
  EXPECT_THAT(section.findings[0], AllOf(HasSubstr("after 24 tokens: freqkv cache_size=8 sinks=2: \u00D7 "),
                                         HasSubstr("in prefill, \u00D7 0.500 in decoding; lagkv")));
  EXPECT_EQ(count(section.body.html(), "class=\"point"), 3U * 3U * 2U);
}

TEST(ReportSections, ScoresAreMeansOverTheHeadsOfALayer) {
  const Section section = scores_section(read_outputs({"scores.json"}));
  const std::string html = section.body.html();
  EXPECT_EQ(count(html, "class=\"map\""), 2U);
  // Two heads: a token is kept by none, by one or by both.
  const std::string kept = html.substr(html.find("data-values", html.find("Share of the tokens kept")));
  const std::string values = kept.substr(0, kept.find('>'));
  EXPECT_THAT(values, AllOf(HasSubstr("0\u00A0%;"), HasSubstr("50\u00A0%;"), HasSubstr("100\u00A0%;")));
  EXPECT_THAT(section.findings, ElementsAre("LagKV keeps 25\u00A0% of each partition of 8 tokens; a KV head shares "
                                            "12.5\u00A0% of what it keeps with another of its layer, where chance "
                                            "gives 25\u00A0%."));
}

TEST(ReportSections, NamesFromFilesStayText) {
  const std::string hostile = "<img src=x onerror=alert(1)>\"'";
  Json comparison = output_json("comparison.json"), task = output_json("needle.json");
  for (const char* member : {"label", "method", "config"}) comparison["configurations"][1][member] = hostile;
  comparison["configurations"][5]["error"] = hostile;
  comparison["configurations"][1]["settings"] = {{hostile, hostile}};
  comparison["command"] = hostile;
  task["task"] = task["method"] = hostile;
  Json latency = output_json("latency.json");
  latency["caches"][1]["label"] = latency["device"] = hostile;
  for (const Section& section : {comparison_section(changed_output(OutputKind::kComparison, comparison)),
                                 tasks_section(changed_output(OutputKind::kTask, task)),
                                 latency_section(changed_output(OutputKind::kLatency, latency))}) {
    EXPECT_THAT(section.body.html(), AllOf(HasSubstr("&lt;img src=x"), Not(HasSubstr("<img"))));
    EXPECT_THAT(findings_list({section}).html(), Not(HasSubstr("<img")));
  }
}

/// Where a result differs from what its program writes.
struct Damage {
  OutputKind kind;
  const char *file, *pointer;
  Section (*make)(const ReportInputs& inputs);
};

class DamagedResult : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedResult, IsRefusedAtItsPlace) {
  const auto& [kind, file, pointer, make] = GetParam();
  Json json = output_json(file);
  json[Json::json_pointer(pointer)] = Json::object({{"unexpected", true}});
  try {
    make(changed_output(kind, json));
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("changed.json: "));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Report, DamagedResult,
    ::testing::Values(
        Damage{OutputKind::kSpectrum, "spectrum.json", "/states/v/all_tokens/curve/power/1", spectra_section},
        Damage{OutputKind::kSpectrum, "spectrum.json", "/states/v/all_tokens/with_dc/heads/2/low_share",
               spectra_section},
        Damage{OutputKind::kSpectrum, "spectrum.json", "/layers", spectra_section},
        Damage{OutputKind::kSpectrum, "spectrum.json", "/coding_gain/mean_removed/v/layers/head", coding_gain_section},
        Damage{OutputKind::kSpectrum, "spectrum.json", "/coding_gain/mean_removed/joint/1", coding_gain_section},
        Damage{OutputKind::kSpectrum, "spectrum.json", "/coding_gain/families/2", coding_gain_section},
        Damage{OutputKind::kConfig, "faedkv.json", "/calibration/ablation/delta/1", ablation_section},
        Damage{OutputKind::kConfig, "faedkv.json", "/calibration/ablation/interval/1/1", ablation_section},
        Damage{OutputKind::kEvaluation, "lagkv.eval.json", "/bytes_ratio", evaluations_section},
        Damage{OutputKind::kEvaluation, "lagkv.eval.json", "/ratio/interval", evaluations_section},
        Damage{OutputKind::kEvaluation, "lagkv.eval.json", "/tail/p99", evaluations_section},
        Damage{OutputKind::kEvaluation, "lagkv.eval.json", "/curves/histogram/1/bin", evaluations_section},
        Damage{OutputKind::kEvaluation, "lagkv.eval.json", "/curves/parts/0/end", evaluations_section},
        Damage{OutputKind::kTask, "needle.json", "/samples/1/answer/partial", tasks_section},
        Damage{OutputKind::kTrace, "streaming.trace.json", "/samples/1/same_tokens", traces_section},
        Damage{OutputKind::kTrace, "streaming.trace.json", "/curves/parts/0/end", traces_section},
        Damage{OutputKind::kTrace, "streaming.trace.json", "/own/undiverged", traces_section},
        Damage{OutputKind::kTrace, "streaming.trace.json", "/trace/tokens", traces_section},
        Damage{OutputKind::kRecommendation, "recommendation.json", "/chosen/bytes", recommendation_section},
        Damage{OutputKind::kRecommendation, "recommendation.json", "/use/flags", recommendation_section},
        Damage{OutputKind::kComparison, "comparison.json", "/configurations/0/ratio/ppl", comparison_section},
        Damage{OutputKind::kComparison, "comparison.json", "/configurations/0/ratio/interval", comparison_section},
        Damage{OutputKind::kComparison, "comparison.json", "/best/0/configuration", comparison_section},
        Damage{OutputKind::kComparison, "comparison.json", "/configurations/2/over_best/kl/mean", comparison_section},
        Damage{OutputKind::kCost, "cost.json", "/lagkv/rows/0/held", cost_section},
        Damage{OutputKind::kPerturbation, "perturb.json", "/layers", perturbation_section},
        Damage{OutputKind::kPerturbation, "perturb.json", "/states/v/same_count/high/mean/1", perturbation_section},
        Damage{OutputKind::kRetention, "retain.json", "/curves/1/band", retention_section},
        Damage{OutputKind::kRetention, "retain.json", "/curves/1/interval/0", retention_section},
        Damage{OutputKind::kScores, "scores.json", "/kept/1/0", scores_section},
        Damage{OutputKind::kScores, "scores.json", "/relative_score/1/0/2", scores_section},
        Damage{OutputKind::kScores, "scores.json", "/head_overlap", scores_section},
        Damage{OutputKind::kLatency, "latency.json", "/lengths", latency_section},
        Damage{OutputKind::kLatency, "latency.json", "/caches/2/decode_ms", latency_section}));

TEST(ReportSections, ScoresOfOtherTokensAreRefused) {
  Json scores = output_json("scores.json");
  for (const int position : {3, 20}) {
    scores["kept"][0][0] = {position};
    EXPECT_THROW(scores_section(changed_output(OutputKind::kScores, scores)), Error) << position;
  }
}

}  // namespace
}  // namespace kvs::testing
