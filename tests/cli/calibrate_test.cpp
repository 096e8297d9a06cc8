#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class CalibratePrograms : public ::testing::Test {
 protected:
  CalibratePrograms() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 3, 70);
  }
  std::vector<std::string> with_text(const std::string& command, std::vector<std::string> more) const {
    std::vector<std::string> words{command,    "--model", folder_ / "model", "--tokens-file", folder_ / "tokens.jsonl",
                                   "--window", "32",      "--quiet",         "--threads",     "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> faedkv(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out", folder_ / out});
    return with_text("faedkv", more);
  }
  std::vector<std::string> elitekv(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--elite", "2", "--out", folder_ / out});
    return with_text("elitekv", more);
  }
  Json config(const std::string& name) const { return parse_json(slurp(folder_ / name), name); }
  double perplexity(const std::vector<std::string>& how) const {
    auto words = with_text("eval", how);
    words.push_back("--json");
    const Outcome outcome = run("kvcalibrate", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "eval").at("ppl").get<double>();
  }
  void expect_valid(const std::string& name) const {
    const Outcome outcome = run("kvcalibrate", {"validate", folder_ / name});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  TemporaryFolder folder_;
};

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

TEST_F(CalibratePrograms, ElitekvSeparateFactorsShareTheBudget) {
  ASSERT_EQ(run("kvcalibrate", elitekv("s.json", {"--rank", "10", "--factorization", "separate"})).status, 0);
  expect_valid("s.json");
  for (const Json& ranks : config("s.json").at("parameters").at("ranks"))
    EXPECT_EQ(ranks[0].get<int>() + ranks[1].get<int>(), 10);
  EXPECT_GT(perplexity({"--config", folder_ / "s.json"}), 1);
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
  for (const Json& heads : config("d.json").at("parameters").at("elite"))
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

TEST_F(CalibratePrograms, EvalRunsEveryMethodAndSaysWhatItHolds) {
  const auto evaluate = [&](std::vector<std::string> how) {
    how.push_back("--json");
    const Outcome outcome = run("kvcalibrate", with_text("eval", how));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "eval");
  };
  const Json full = evaluate({"--method", "full"});
  EXPECT_EQ(full.at("bytes_ratio"), 1.0);
  EXPECT_FALSE(full.contains("kl"));
  const std::vector<std::pair<std::string, std::vector<std::string>>> methods{
      {"streaming", {"cache_size=16"}},
      {"dropping", {"cache_size=16"}},
      {"freqkv", {"cache_size=16", "band=high"}},
      {"lagkv", {"sinks=2", "lag=4", "ratio=0.25"}}};
  for (const auto& [method, settings] : methods) {
    std::vector<std::string> how{"--method", method, "--set"};
    how.insert(how.end(), settings.begin(), settings.end());
    const Json found = evaluate(how);
    EXPECT_EQ(found.at("full").at("ppl"), full.at("ppl")) << method;
    EXPECT_LE(found.at("bytes_ratio").get<double>(), 0.5) << method;
    EXPECT_LE(found.at("bytes_per_token_end"), found.at("bytes_per_token")) << method;
    EXPECT_GT(found.at("kl").get<double>(), 0) << method;
    EXPECT_NEAR(found.at("ratio").at("ppl").get<double>(), found.at("ppl").get<double>() / full.at("ppl").get<double>(),
                1e-12);
    how.insert(how.end(), {"--against", "none"});
    EXPECT_EQ(evaluate(how).at("ppl"), found.at("ppl")) << method;
  }
}

TEST_F(CalibratePrograms, ASavedConfigIsTheMethodThatWasEvaluated) {
  const std::vector<std::vector<std::string>> methods{{"full"},
                                                      {"streaming", "cache_size=16"},
                                                      {"dropping", "cache_size=16,20,24,12", "rope=post"},
                                                      {"freqkv", "cache_size=16", "layers=1,3", "gamma=0.25,0.5"},
                                                      {"lagkv", "lag=4", "sinks=2", "prefix=20", "prefill=whole"},
                                                      {"l2norm", "prefix=20", "skip_layers=0,2"}};
  const auto evaluate = [&](const std::vector<std::string>& how) {
    auto words = with_text("eval", how);
    words.insert(words.end(), {"--json", "--force"});
    const Outcome outcome = run("kvcalibrate", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "eval");
  };
  for (const std::vector<std::string>& method : methods) {
    std::vector<std::string> how{"--method", method.front(), "--save-config", folder_ / "m.json"};
    if (method.size() > 1) how.emplace_back("--set");
    how.insert(how.end(), method.begin() + 1, method.end());
    const Json found = evaluate(how);
    expect_valid("m.json");
    const Json saved = config("m.json");
    EXPECT_EQ(saved.at("quality").at("ppl"), found.at("ppl"));
    const Json again = evaluate({"--config", folder_ / "m.json", "--save-config", folder_ / "again.json"});
    for (const char* same : {"method", "ppl", "kl", "bytes_per_token", "compressions"})
      EXPECT_EQ(again.value(same, Json()), found.value(same, Json())) << method.front() << ' ' << same;
    EXPECT_EQ(config("again.json").at("parameters"), saved.at("parameters")) << method.front();
  }
}

TEST_F(CalibratePrograms, SetOverridesAConfig) {
  ASSERT_EQ(run("kvcalibrate", with_text("eval", {"--method", "dropping", "--set", "cache_size=16", "gamma=0.25",
                                                  "--save-config", folder_ / "d.json"}))
                .status,
            0);
  const std::string path = folder_ / "d.json";
  EXPECT_EQ(perplexity({"--config", path, "--set", "cache_size=20"}),
            perplexity({"--method", "dropping", "--set", "cache_size=20", "gamma=0.25"}));
  const auto refuse = [&](const std::vector<std::string>& how, int status, const std::string& part) {
    const Outcome outcome = run("kvcalibrate", with_text("eval", how));
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refuse({"--config", path, "--set", "cache_size=5"}, 2, "--set cache_size: found 5, expected a whole number of at");
  refuse({"--config", path, "--set", "lag=5"}, 2, "--set lag: found a parameter that the method does not have");
  Json bad = config("d.json");
  bad["parameters"]["cache_size"] = {16, 16};
  std::ofstream(folder_ / "d.json") << bad.dump();
  refuse({"--config", path}, 3, "d.json: /parameters/cache_size: found a list of 2, expected a value for each of 4");
  bad["parameters"]["cache_size"] = 16;
  bad["model"]["kv_heads"] = 3;
  std::ofstream(folder_ / "d.json") << bad.dump();
  refuse({"--config", path}, 7, "kv_heads 3, expected 2");
}

TEST_F(CalibratePrograms, EvalKilledAndResumedIsIdentical) {
  write_tokens_file(folder_ / "tokens.jsonl", 40, 70);
  const auto words = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--method", "freqkv", "--set", "cache_size=16", "--decode", "8", "--save-config",
                             folder_ / "c.json", "--out", folder_ / "e.json"});
    return with_text("eval", more);
  };
  ASSERT_EQ(run("kvcalibrate", words({})).status, 0);
  const std::string whole = slurp(folder_ / "e.json"), saved = slurp(folder_ / "c.json");
  const Outcome again = run("kvcalibrate", words({"--resume"}));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("finished before"));
  EXPECT_EQ(run("kvcalibrate", words({})).status, 7);
  std::mt19937 random(7);
  int killed = 0;
  for (int round = 0; round < 4; ++round) {
    std::filesystem::remove(folder_ / "e.json");
    std::filesystem::remove(folder_ / "c.json");
    killed += run_with_kills("kvcalibrate", words({}), words({"--resume"}), random);
    EXPECT_EQ(slurp(folder_ / "e.json"), whole) << "round " << round;
    EXPECT_EQ(slurp(folder_ / "c.json"), saved) << "round " << round;
  }
  EXPECT_GT(killed, 1);
  EXPECT_EQ(run("kvcalibrate", with_text("eval", {"--method", "full", "--resume"})).status, 2);  // no --out
}

TEST_F(CalibratePrograms, EvalTimesPrefillAndDecodeApart) {
  const auto evaluate = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--method", "lagkv", "--set", "lag=4", "sinks=2", "--json"});
    const Outcome outcome = run("kvcalibrate", with_text("eval", more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "eval");
  };
  const Json groups = evaluate({}), mixed = evaluate({"--decode", "8"}), steps = evaluate({"--decode", "32"});
  EXPECT_FALSE(groups.contains("decode_tokens_per_second"));
  EXPECT_FALSE(steps.contains("prefill_tokens_per_second"));
  for (const char* rate : {"prefill_tokens_per_second", "decode_tokens_per_second", "compression_share"})
    EXPECT_GT(mixed.at(rate).get<double>(), 0) << rate;
  EXPECT_LT(mixed.at("compression_share").get<double>(), 1);
  for (const Json& other : {mixed, steps}) {
    EXPECT_NEAR(other.at("ppl").get<double>(), groups.at("ppl").get<double>(), 1e-4);
    EXPECT_EQ(other.at("compressions"), groups.at("compressions"));
  }
}

TEST_F(CalibratePrograms, EvalScoresTheLastTokensOfWindowsThatOverlap) {
  const auto evaluate = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--method", "full", "--json"});
    const Outcome outcome = run("kvcalibrate", with_text("eval", more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "eval");
  };
  const Json strided = evaluate({"--stride", "8"});
  EXPECT_EQ(strided.at("documents"), 3 * 5);  // ⌊(70 − 32)/8⌋ + 1 windows of each text
  EXPECT_EQ(strided.at("tokens_scored"), 15 * 8);
  EXPECT_EQ(strided.at("stride"), 8);
  const Outcome refused = run("kvcalibrate", with_text("eval", {"--method", "full", "--stride", "32"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--stride"));
}

TEST_F(CalibratePrograms, ATextBeyondTheContextIsARemarkWherePositionsMatter) {
  write_tokens_file(folder_ / "tokens.jsonl", 1, 600);
  const auto said = [&](const std::vector<std::string>& how) {
    std::vector<std::string> words{
        "eval",      "--model", folder_ / "model", "--tokens-file", folder_ / "tokens.jsonl", "--window", "600",
        "--threads", "1"};  // the context is 512
    words.insert(words.end(), how.begin(), how.end());
    const Outcome outcome = run("kvcalibrate", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out + outcome.err;
  };
  constexpr const char* kRemark = "longer than the model's context of 512";
  constexpr const char* kFull = "full cache, which is beyond the model's context of 512";
  EXPECT_THAT(said({"--method", "full"}), HasSubstr(kRemark));
  EXPECT_THAT(said({"--method", "lagkv", "--against", "none"}), HasSubstr(kRemark));
  const std::string slots = said({"--method", "dropping", "--set", "cache_size=64"});
  EXPECT_THAT(slots, ::testing::Not(HasSubstr(kRemark)));
  EXPECT_THAT(slots, HasSubstr(kFull));
  EXPECT_THAT(said({"--method", "dropping", "--set", "cache_size=64", "rope=post"}), HasSubstr(kRemark));
}

TEST_F(CalibratePrograms, EvalSaysWhenThereIsNothingToCompress) {
  auto words = with_text("eval", {"--method", "lagkv", "--set", "sinks=30", "lag=8"});
  std::erase(words, "--quiet");
  const Outcome outcome = run("kvcalibrate", words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("note: documents of 32 tokens are all kept: lagkv has nothing to compress"));
}

TEST_F(CalibratePrograms, EvalRefusesWhatItCannotRunInOneLine) {
  const auto refuse = [&](const std::vector<std::string>& how, const std::string& part) {
    const Outcome outcome = run("kvcalibrate", with_text("eval", how));
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refuse({"--method", "quest"}, "expected one of full, streaming");
  refuse({"--method", "freqkv"}, "--set cache_size: found nothing");
  refuse({"--method", "freqkv", "--set", "cache_size=16", "lag=4"}, "--set lag: found a parameter that the method");
  refuse({"--method", "freqkv", "--set", "cache_size=16", "--set", "cache_size=16"}, "twice");
  refuse({"--method", "freqkv", "--set", "cache_size=16", "gamma=0.01"}, "keeps 0 of 12 slots");
  refuse({"--method", "lagkv", "--set", "ratio"}, "NAME=VALUE");
  refuse({"--method", "lagkv", "--set", "lag=8", "ratio=0.1"}, "--set ratio: found 0.1, which keeps none of 8 tokens");
  const auto too_little = [&](const std::vector<std::string>& how, const std::string& part) {
    const Outcome outcome = run("kvcalibrate", with_text("eval", how));
    EXPECT_EQ(outcome.status, 5) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  too_little({"--method", "l2norm", "--set", "prefix=8", "ratio=0.1"}, "keeps none of a prefix of 8 tokens");
  too_little({"--method", "lagkv", "--set", "prefix=31"}, "found a prefix of 31 tokens in documents of 32");
}

TEST_F(CalibratePrograms, GenerateNeedsATokenizerAndAPrompt) {
  const Outcome none = run("kvcalibrate", {"generate", "--model", folder_ / "model", "--prompt", "x"});
  EXPECT_EQ(none.status, 3);
  EXPECT_THAT(none.err, HasSubstr("tokenizer"));
  EXPECT_EQ(run("kvcalibrate", {"generate", "--model", folder_ / "model"}).status, 2);
}

TEST_F(CalibratePrograms, GenerateContinuesAPromptOfTheRealModel) {
  const char* model = std::getenv("KVS_MODEL");
  if (model == nullptr) GTEST_SKIP() << "set KVS_MODEL to the path that scripts/fetch_model.sh prints";
  const std::vector<std::string> words{"generate", "--model", model,    "--prompt", "The capital of France is",
                                       "--tokens", "24",      "--quiet"};
  const Outcome full = run("kvcalibrate", words);
  EXPECT_EQ(full.status, 0) << full.err;
  EXPECT_THAT(full.out, HasSubstr("Paris"));
  auto compressed = words;
  compressed.insert(compressed.end(), {"--method", "freqkv", "--set", "cache_size=12", "--json"});
  const Outcome freqkv = run("kvcalibrate", compressed);
  EXPECT_EQ(freqkv.status, 0) << freqkv.err;
  const Json result = parse_json(freqkv.out, "stdout");
  EXPECT_EQ(result.at("ids").size(), 24U);
  EXPECT_GT(result.at("compressions").get<int>(), 3);
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
