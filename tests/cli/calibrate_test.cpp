// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(CalibratePrograms, FaedkvWritesAValidConfigWithFigures) {
  for (const char* protocol : {"continuation", "in-place"}) {
    const std::string name = std::string(protocol) + ".json";
    const Outcome made = run("kvcalibrate", faedkv(name, {"--protocol", protocol, "--sweep", "2,8"}));
    ASSERT_EQ(made.status, 0) << made.err;
    expect_valid(name);
    const Json result = config(name);
    EXPECT_EQ(result.at("parameters").at("kept").size(), 4U);
    EXPECT_EQ(result.at("parameters").at("kept")[0].size(), 2U);  // half of four chunks
    EXPECT_EQ(result.at("parameters").at("sinks"), 2);            // also where in-place ablates with none
    EXPECT_EQ(result.at("calibration").at("ablation").at("interval")[0][0].size(), 2U);  // six documents
    EXPECT_EQ(result.at("quality").at("sweep").size(), 3U);
    for (const char* figure : {"_ablation.svg", "_filtering.png", "_chunks.svg"})
      EXPECT_GT(slurp(folder_ / (protocol + std::string(figure))).size(), 1000U) << figure;
  }
}

TEST_F(CalibratePrograms, FaedkvOfOneDocumentHasNoInterval) {
  ASSERT_EQ(run("kvcalibrate", faedkv("one.json", {"--documents", "1"})).status, 0);
  expect_valid("one.json");
  EXPECT_TRUE(config("one.json").at("calibration").at("ablation").at("interval")[0][0].is_null());
}

TEST_F(CalibratePrograms, FaedkvWithABudgetSaysWhatItSpentAndLeftOpen) {
  // 6 documents · 4 layers · 4 chunks = 96 passes, of which the first two documents take 32.
  const Outcome made = run("kvcalibrate", faedkv("budget.json", {"--passes", "50", "--confidence", "0.999"}));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("passes: 50 of the full table's 96"));
  EXPECT_THAT(made.out, HasSubstr("of 16 undecided at the threshold"));
  expect_valid("budget.json");
  const Json ablation = config("budget.json").at("calibration").at("ablation");
  std::size_t passes = 0;
  for (const Json& layer : ablation.at("documents"))
    for (const Json& documents : layer) passes += documents.get<std::size_t>();
  EXPECT_EQ(passes, 50U);
  EXPECT_EQ(ablation.at("confidence"), 0.999);
  EXPECT_EQ(ablation.at("undecided").size(), 4U);
  ASSERT_EQ(run("kvcalibrate", faedkv("full.json")).status, 0);
  EXPECT_FALSE(config("full.json").at("calibration").at("ablation").contains("documents"));
}

TEST_F(CalibratePrograms, FaedkvRefusesABudgetBelowTwoDocuments) {
  const Outcome refused = run("kvcalibrate", faedkv("few.json", {"--passes", "31"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--passes: found 31, expected at least 32: 2 documents for each of 16 chunks"));
  EXPECT_EQ(run("kvcalibrate", faedkv("few.json", {"--confidence", "1"})).status, 2);
  // One document is all there is: every chunk has it and none is decided.
  const Outcome one = run("kvcalibrate", faedkv("one.json", {"--documents", "1", "--passes", "16"}));
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("16 of 16 undecided"));
  expect_valid("one.json");
}

TEST_F(CalibratePrograms, FaedkvOfSomeLayersEqualsThoseOfAll) {
  ASSERT_EQ(run("kvcalibrate", faedkv("all.json")).status, 0);
  ASSERT_EQ(run("kvcalibrate", faedkv("some.json", {"--layers", "1,3"})).status, 0);
  const Json all = config("all.json").at("calibration").at("ablation").at("delta");
  const Json some = config("some.json").at("calibration").at("ablation").at("delta");
  EXPECT_EQ(some[0], all[1]);
  EXPECT_EQ(some[1], all[3]);
}

TEST_F(CalibratePrograms, FaedkvKilledAndResumedIsIdentical) {
  const auto remove_outputs = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "."))
      if (entry.path().filename().string().starts_with("whole")) std::filesystem::remove(entry.path());
  };
  const std::vector<std::vector<std::string>> ways{{}, {"--passes", "60", "--confidence", "0.8"}};
  std::mt19937 random(5);
  for (const auto& way : ways) {
    auto again = way;
    again.push_back("--resume");
    remove_outputs();
    ASSERT_EQ(run("kvcalibrate", faedkv("whole.json", way)).status, 0);
    // The recorded command names the output, so all runs use one name.
    const std::string whole = slurp(folder_ / "whole.json");
    int killed = 0;
    for (int round = 0; round < 4; ++round) {
      remove_outputs();
      // A kill between the figures and the config leaves figures: those of the same run are replaced.
      killed += run_with_kills("kvcalibrate", faedkv("whole.json", way), faedkv("whole.json", again), random);
      EXPECT_EQ(slurp(folder_ / "whole.json"), whole) << "round " << round;
    }
    EXPECT_GT(killed, 1);
  }
}

TEST_F(CalibratePrograms, FaedkvGivesBothPerplexitiesAnErrorOnOneDocumentToo) {
  for (const char* documents : {"1", "3"}) {
    const Outcome made = run("kvcalibrate", faedkv("a.json", {"--documents", documents, "--force"}));
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, ::testing::ContainsRegex("perplexity [0-9.]+ ± .* chunks per layer [0-9.]+ ± ")) << documents;
    const Json found = config("a.json");
    EXPECT_GT(found.at("calibration").at("ablation").at("nll_error"), 0);
    EXPECT_GT(found.at("quality").at("nll_error"), 0);
  }
}

TEST_F(CalibratePrograms, FaedkvStopsOnSigintAndResumes) {
  write_tokens_file(folder_ / "tokens.jsonl", 200, 70);
  const Outcome stopped = run_and_interrupt("kvcalibrate", faedkv("a.json"), folder_ / "a.json.journal");
  ASSERT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_EQ(run("kvcalibrate", faedkv("a.json")).status, 7);
  const Outcome other = run("kvcalibrate", faedkv("a.json", {"--resume", "--transform", "dct"}));
  EXPECT_EQ(other.status, 7);
  EXPECT_THAT(other.err, HasSubstr("transform"));
}

TEST_F(CalibratePrograms, ElitekvWithFactorsOfFullRankEqualsPartialRope) {
  ASSERT_EQ(run("kvcalibrate", elitekv("partial.json")).status, 0);
  // [W_k without elite rows ; W_v]: 2 · (8 − 4) + 2 · 8 = 24 rows, d_model 48: full rank 24.
  ASSERT_EQ(run("kvcalibrate", elitekv("full.json", {"--rank", "24", "--allow-more-parameters"})).status, 0);
  ASSERT_EQ(run("kvcalibrate", elitekv("low.json", {"--rank", "4"})).status, 0);
  for (const char* name : {"partial.json", "full.json", "low.json"}) expect_valid(name);
  const double partial = perplexity({"--config", folder_ / "partial.json"});
  EXPECT_NEAR(perplexity({"--config", folder_ / "full.json"}) / partial, 1, 1e-4);
  EXPECT_GT(std::abs(perplexity({"--config", folder_ / "low.json"}) / partial - 1), 1e-3);
}

TEST_F(CalibratePrograms, ElitekvWithEveryChunkEliteFactorisesTheValuesAlone) {
  const double full = perplexity({"--method", "full"});
  for (const char* whiten : {"off", "on", "both"}) {  // full rank: the 2 · 8 rows of W_v
    const std::vector<std::string> how{
        "--elite", "4",     "--rank",           "16",     "--allow-more-parameters", "--whiten",
        whiten,    "--out", folder_ / "v.json", "--force"};
    const Outcome made = run("kvcalibrate", with_text("elitekv", how));
    ASSERT_EQ(made.status, 0) << made.err;
    expect_valid("v.json");
    EXPECT_NEAR(perplexity({"--config", folder_ / "v.json"}) / full, 1, 1e-4) << whiten;
  }
}

TEST_F(CalibratePrograms, ElitekvSeparateFactorsShareTheBudget) {
  ASSERT_EQ(run("kvcalibrate", elitekv("s.json", {"--rank", "10", "--factorization", "separate"})).status, 0);
  expect_valid("s.json");
  const Json parameters = config("s.json").at("parameters");
  for (const Json& ranks : parameters.at("ranks")) EXPECT_EQ(ranks[0].get<int>() + ranks[1].get<int>(), 10);
  EXPECT_GT(perplexity({"--config", folder_ / "s.json"}), 1);
}

TEST_F(CalibratePrograms, ElitekvChoosesBetweenThePairsOfASize) {
  // 16 of 32 values: 4r + d_ckv = 16.
  ASSERT_EQ(run("kvcalibrate", with_text("elitekv", {"--cache-ratio", "0.5", "--rank-step", "4", "--out",
                                                     folder_ / "half.json", "--outputs", "fitted"}))
                .status,
            0);
  expect_valid("half.json");
  const Json half = config("half.json");
  const Json& trials = half.at("calibration").at("trials");
  ASSERT_EQ(trials.size(), 3U);
  const Json& best = *std::ranges::min_element(trials, {}, [](const Json& trial) { return trial.at("ppl"); });
  for (const char* name : {"r", "d_ckv"}) EXPECT_EQ(half.at("parameters").at(name), best.at(name));
  for (const Json& trial : trials)
    EXPECT_EQ(4 * trial.at("r").get<int>() + trial.at("d_ckv").get<int>(), 16) << trial.dump();
  // Half of the cache is one of the two KV heads.
  EXPECT_EQ(half.at("calibration").at("gqa").at("heads"), 1);
  const Json gqa =
      Json::parse(run("kvcalibrate", with_text("eval", {"--method", "gqa", "--set", "heads=1", "--json"})).out);
  EXPECT_EQ(gqa.at("bytes_ratio"), 0.5);
  const Json result =
      Json::parse(run("kvcalibrate", with_text("eval", {"--config", folder_ / "half.json", "--json"})).out);
  EXPECT_EQ(result.at("bytes_ratio"), 0.5);
  const auto refused = [&](std::vector<std::string> more, const std::string& word) {
    more.insert(more.end(), {"--out", folder_ / "x.json"});
    const Outcome outcome = run("kvcalibrate", with_text("elitekv", more));
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(word));
  };
  refused({"--cache-ratio", "0.5", "--elite", "2"}, "--elite");
  refused({"--cache-ratio", "0.5", "--norm", "1"}, "--norm 2");
  refused({"--cache-ratio", "0.03"}, "--rank-step");
  refused({"--elite", "2", "--rank", "8", "--pairs", "uniform", "--queries", "fitted"}, "--pairs attention");
  refused({"--elite", "2", "--norm", "1", "--pairs", "attention"}, "--norm 2");
}

TEST_F(CalibratePrograms, ElitekvTriesJointAndSeparateFactors) {
  const Outcome outcome = run("kvcalibrate", with_text("elitekv", {"--cache-ratio", "0.5", "--rank-step", "8", "--out",
                                                                   folder_ / "any.json", "--factorization", "any"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_valid("any.json");
  const Json any = config("any.json"), &trials = any.at("calibration").at("trials");
  ASSERT_EQ(trials.size(), 2U);
  const Json &joint = trials[0], &separate = trials[1];
  EXPECT_EQ(joint.at("factorization"), "joint");
  EXPECT_EQ(separate.at("factorization"), "separate");
  for (const Json& trial : trials) {
    EXPECT_EQ(trial.at("r"), 2);
    EXPECT_EQ(trial.at("d_ckv"), 8);
  }
  // For each of 4 layers 8 elite rows of 48, and factors of rank 8: 8 + 16 rows jointly; apart at least the ranks' 48s.
  EXPECT_EQ(joint.at("parameters"), 4 * (8 * 48 + 8 * (24 + 48)));
  EXPECT_GT(separate.at("parameters"), 4 * (8 * 48 + 8 * (8 + 48)));
  EXPECT_LT(separate.at("parameters"), 4 * (8 * 48 + 8 * (16 + 48)));
  const bool joint_is_best = joint.at("ppl").get<double>() <= separate.at("ppl").get<double>();
  EXPECT_EQ(any.at("parameters").at("factorization"), joint_is_best ? "joint" : "separate");
  EXPECT_THAT(outcome.out, ::testing::AllOf(HasSubstr("J-LRD"), HasSubstr("S-LRD"), HasSubstr("GQA, KV heads: 1")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "any_trials.svg"));
  const Outcome refused = run("kvcalibrate", elitekv("x.json", {"--rank", "8", "--factorization", "any"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--factorization any: needs --cache-ratio"));
}

TEST_F(CalibratePrograms, ElitekvLetsLayersTradeAtTheSameBytes) {
  const auto by_layer = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--per-layer-rounds", "1", "--out", folder_ / "layers.json", "--force"});
    return run("kvcalibrate", with_text("elitekv", more));
  };
  // 4r + d_ckv = 16 in each of four layers; the fourth text decides which sizes are kept.
  const Outcome made = by_layer({"--elite", "2", "--rank", "8", "--rank-step", "2", "--outputs", "fitted"});
  ASSERT_EQ(made.status, 0) << made.err;
  expect_valid("layers.json");
  const Json made_of = config("layers.json"), &found = made_of.at("calibration").at("by_layer"),
             &r = made_of.at("parameters").at("r"), &d_ckv = made_of.at("parameters").at("d_ckv");
  EXPECT_GE(found.at("measured"), 1 + 4 * 2);
  const bool layers = found.at("winner") == "layers";
  const Json& interval = found.at("interval");
  ASSERT_TRUE(interval.is_array()) << "two documents are held out";
  EXPECT_EQ(layers, interval[1].get<double>() < 0);
  EXPECT_THAT(made.out, HasSubstr(layers ? "chosen: layers" : "chosen: the same for all, the plainer"));
  if (layers) {
    int values = 0;
    for (std::size_t n = 0; n < 4; ++n) {
      values += 4 * r.at(n).get<int>() + d_ckv.at(n).get<int>();
      for (const Json& head : made_of.at("parameters").at("elite").at(n)) EXPECT_EQ(head.size(), r.at(n));
    }
    EXPECT_LE(values, 4 * 16);
  } else {
    EXPECT_EQ(r, 2);
    EXPECT_EQ(d_ckv, 8);
  }
  EXPECT_GT(perplexity({"--config", folder_ / "layers.json"}), 1);
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--elite", "2"},
                                               {"--elite", "2", "--rank", "8", "--factorization", "separate"},
                                               {"--elite", "2", "--rank", "8", "--norm", "1"}}) {
    const Outcome refused = by_layer(more);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("--per-layer-rounds: needs --"));
  }
}

TEST_F(CalibratePrograms, ElitekvFromACaptureFindsTheSameSets) {
  ASSERT_EQ(run("kvspectrum", {"capture", "--model", folder_ / "model", "--tokens-file", folder_ / "tokens.jsonl",
                               "--window", "32", "--states", "q_pre,k_pre", "--out", folder_ / "c.h5", "--quiet"})
                .status,
            0);
  for (const char* norm : {"1", "2"}) {
    const std::string live = std::string("live") + norm + ".json", stored = std::string("stored") + norm + ".json";
    ASSERT_EQ(run("kvcalibrate", elitekv(live, {"--norm", norm})).status, 0);
    const Outcome made = run("kvcalibrate", {"elitekv", "--capture", folder_ / "c.h5", "--elite", "2", "--norm", norm,
                                             "--out", folder_ / stored, "--quiet"});
    ASSERT_EQ(made.status, 0) << made.err;
    expect_valid(stored);
    EXPECT_EQ(config(stored).at("parameters").at("elite"), config(live).at("parameters").at("elite"));
    EXPECT_EQ(config(stored).at("model"), config(live).at("model"));
  }
}

TEST_F(CalibratePrograms, ElitekvPerQueryHeadIsAnalysisOnly) {
  const Outcome made = run("kvcalibrate", elitekv("q.json", {"--granularity", "query-head", "--rank", "8"}));
  ASSERT_EQ(made.status, 0) << made.err;
  expect_valid("q.json");
  EXPECT_EQ(config("q.json").at("parameters").at("elite")[0].size(), 6U);
  EXPECT_TRUE(config("q.json").at("files").empty());
  const Outcome eval = run("kvcalibrate", with_text("eval", {"--config", folder_ / "q.json"}));
  EXPECT_EQ(eval.status, 4);
}

TEST_F(CalibratePrograms, ElitekvOfNormedKeysIsRopeliteOnly) {
  write_tiny_model(folder_ / "model", TinyKind::kNormed);
  const Outcome refused = run("kvcalibrate", elitekv("n.json", {"--rank", "8"}));
  EXPECT_EQ(refused.status, 4);
  EXPECT_THAT(refused.err, HasSubstr("QK-norm"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "n.json"));
  ASSERT_EQ(run("kvcalibrate", elitekv("n.json")).status, 0);
  EXPECT_GT(perplexity({"--config", folder_ / "n.json"}), 1);
}

TEST_F(CalibratePrograms, ElitekvBaselinesAndDisjointSets) {
  for (const char* baseline : {"uniform", "contribution", "high", "low"}) {
    const std::string name = std::string(baseline) + ".json";
    ASSERT_EQ(run("kvcalibrate", elitekv(name, {"--baseline", baseline})).status, 0);
    expect_valid(name);
  }
  EXPECT_EQ(config("high.json").at("parameters").at("elite")[0][0], Json({0, 1}));
  EXPECT_EQ(config("low.json").at("parameters").at("elite")[0][0], Json({2, 3}));
  EXPECT_EQ(config("uniform.json").at("parameters").at("elite")[0][0], Json({0, 3}));
  ASSERT_EQ(run("kvcalibrate", elitekv("d.json", {"--disjoint", "on"})).status, 0);
  const Json parameters = config("d.json").at("parameters");
  for (const Json& heads : parameters.at("elite"))
    for (const Json& chunk : heads[0])
      EXPECT_EQ(std::count(heads[1].begin(), heads[1].end(), chunk), 0) << heads.dump();
}

TEST_F(CalibratePrograms, ElitekvKilledAndResumedIsIdentical) {
  const std::vector<std::string> how{"--norm", "1", "--rank", "8"};
  auto again = how;
  again.push_back("--resume");
  ASSERT_EQ(run("kvcalibrate", elitekv("whole.json", how)).status, 0);
  const std::string whole = slurp(folder_ / "whole.json"), factors = slurp(folder_ / "whole.safetensors");
  std::mt19937 random(5);
  int killed = 0;
  for (int round = 0; round < 6; ++round) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "."))
      if (entry.path().filename().string().starts_with("whole")) std::filesystem::remove(entry.path());
    killed += run_with_kills("kvcalibrate", elitekv("whole.json", how), elitekv("whole.json", again), random);
    EXPECT_EQ(slurp(folder_ / "whole.json"), whole) << "round " << round;
    EXPECT_EQ(slurp(folder_ / "whole.safetensors"), factors);
  }
  EXPECT_GT(killed, 1);
}

TEST_F(CalibratePrograms, AFinishedRunIsResumedAsOneWithNothingToDo) {
  for (const std::string command : {"faedkv", "elitekv"}) {
    const auto words = [&](std::vector<std::string> more) {
      return command == "faedkv" ? faedkv(command, std::move(more)) : elitekv(command, std::move(more));
    };
    ASSERT_EQ(run("kvcalibrate", words({})).status, 0);
    const auto written = std::filesystem::last_write_time(folder_ / command);
    const Outcome again = run("kvcalibrate", words({"--resume"}));
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_THAT(again.out, HasSubstr("finished before"));
    EXPECT_EQ(std::filesystem::last_write_time(folder_ / command), written);
    EXPECT_EQ(run("kvcalibrate", words({"--resume", "--layers", "1"})).status, 7);  // another run's
    EXPECT_EQ(run("kvcalibrate", words({})).status, 7);
  }
}

TEST_F(CalibratePrograms, ValidateFindsWhatIsWrong) {
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json", {"--rank", "8"})).status, 0);
  const Json good = config("e.json");
  const auto expect = [&](const Json& changed, int status, const std::string& part) {
    std::ofstream(folder_ / "bad.json") << changed.dump();
    const Outcome outcome = run("kvcalibrate", {"validate", folder_ / "bad.json"});
    EXPECT_EQ(outcome.status, status) << part;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  Json bad = good;
  bad["version"] = 2;
  expect(bad, 4, "/version");
  bad = good;
  bad["method"] = "magic";
  expect(bad, 3, "/method");
  bad = good;
  bad["parameters"]["elite"][1][0][1] = 99;
  expect(bad, 3, "/parameters/elite/1/0/1");
  bad = good;
  bad["parameters"]["elite"][1][0][1] = bad["parameters"]["elite"][1][0][0];
  expect(bad, 3, "/parameters/elite/1/0/1");
  bad = good;
  bad["parameters"]["elite"].erase(0);
  expect(bad, 3, "/parameters/elite");
  bad = good;
  bad["parameters"]["extra"] = 1;
  expect(bad, 3, "parameters");
  bad = good;
  bad["model"]["sha256"] = "xyz";
  expect(bad, 3, "sha256");
  std::ofstream(folder_ / "e.safetensors", std::ios::app) << "x";
  expect(good, 3, "/files/0/sha256");
}

TEST_F(CalibratePrograms, AConfigForAnotherModelIsAConflict) {
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json")).status, 0);
  std::string weights = slurp(folder_ / "model/model.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  std::ofstream(folder_ / "model/model.safetensors", std::ios::binary) << weights;
  const Outcome outcome = run("kvcalibrate", with_text("eval", {"--config", folder_ / "e.json"}));
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(outcome.err, HasSubstr("sha256"));
}

TEST_F(CalibratePrograms, RefusesImpossibleNumbers) {
  const auto expect = [&](const std::vector<std::string>& words, int status, const std::string& part) {
    const Outcome outcome = run("kvcalibrate", words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  expect(faedkv("x.json", {"--prefix", "5"}), 2, "--prefix");
  expect(with_text("faedkv", {"--chunks", "99", "--sinks", "2", "--recent", "3", "--out", folder_ / "x.json"}), 2,
         "--chunks");
  expect(with_text("elitekv", {"--elite", "5", "--out", folder_ / "x.json"}), 2, "--elite");
  expect(elitekv("x.json", {"--rank", "25"}), 2, "--rank");
  expect(elitekv("x.json", {"--rank", "0"}), 2, "--rank");
  expect(elitekv("x.json", {"--model", "again"}), 2, "--model");
  expect(with_text("eval", {}), 2, "--config");
  expect({"validate", folder_ / "none.json"}, 3, "none.json");
}

TEST_F(CalibratePrograms, DestroyNothingThatTheyReadNotEvenWithForce) {
  const auto refuse = [](const std::vector<std::string>& words) {
    const Outcome refused = run("kvcalibrate", words);
    EXPECT_EQ(refused.status, 2) << refused.err;
  };
  const std::string model = slurp(folder_ / "model/model.safetensors");
  refuse(elitekv("model/config.json", {"--force"}));
  refuse(elitekv("model/model.json", {"--rank", "16", "--force"}));  // whose factors are model.safetensors
  refuse(elitekv("el.safetensors", {"--rank", "16", "--force"}));    // config and factors
  refuse(faedkv("model/a.json", {"--force"}));
  ASSERT_EQ(run("kvspectrum", {"capture", "--model", folder_ / "model", "--tokens-file", folder_ / "tokens.jsonl",
                               "--window", "32", "--states", "q_pre,k_pre", "--out", folder_ / "c.h5"})
                .status,
            0);
  for (const char* out : {"c.h5", "c.h5.manifest.json"})
    refuse({"elitekv", "--capture", folder_ / "c.h5", "--elite", "2", "--out", folder_ / out, "--force"});
  ASSERT_EQ(run("kvcalibrate", elitekv("el.json", {"--rank", "16"})).status, 0);
  const std::string factors = slurp(folder_ / "el.safetensors");
  for (const char* out : {"el.json", "el.safetensors", "model/eval.json", "tokens.jsonl"})
    refuse(with_text("eval", {"--config", folder_ / "el.json", "--out", folder_ / out, "--force"}));
  EXPECT_TRUE(slurp(folder_ / "model/model.safetensors") == model);
  EXPECT_TRUE(slurp(folder_ / "el.safetensors") == factors);
  EXPECT_EQ(run("kvspectrum", {"verify", folder_ / "c.h5"}).status, 0);
}

}  // namespace
}  // namespace kvs::testing
