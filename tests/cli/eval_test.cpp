// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

using EvalPrograms = CalibratePrograms;

TEST_F(EvalPrograms, EvalRunsEveryMethodAndSaysWhatItHolds) {
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
    how.insert(how.end(), {"--reference", "none"});
    EXPECT_EQ(evaluate(how).at("ppl"), found.at("ppl")) << method;
  }
}

TEST_F(EvalPrograms, ASavedConfigIsTheMethodThatWasEvaluated) {
  const std::vector<std::vector<std::string>> methods{{"full"},
                                                      {"streaming", "cache_size=16"},
                                                      {"dropping", "cache_size=16,20,24,12", "rope=post"},
                                                      {"tova", "cache_size=16"},
                                                      {"freqkv", "cache_size=16", "layers=1,3", "gamma=0.25,0.5"},
                                                      {"lagkv", "lag=4", "sinks=2", "prefix=20", "prefill=whole"},
                                                      {"l2norm", "prefix=20", "skip_layers=0,2"},
                                                      {"gqa", "heads=1,2,1,2"}};
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

TEST_F(EvalPrograms, SetOverridesAConfig) {
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

TEST_F(EvalPrograms, AStoreOfSomeLayersLeavesTheOthersOfAnElitekvConfig) {
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json", {"--rank", "8"})).status, 0);
  const auto evaluate = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> how{"--config", folder_ / "e.json", "--reference", "none", "--json"};
    if (!settings.empty()) how.emplace_back("--set");
    how.insert(how.end(), settings.begin(), settings.end());
    const Outcome outcome = run("kvcalibrate", with_text("eval", how));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "eval");
  };
  const auto bytes = [](const Json& found) { return found.at("bytes_per_token").get<double>(); };
  const Json plain = evaluate({}), one = evaluate({"layers=0", "type=q8_0"}),
             last = evaluate({"layers=3", "type=q8_0"}), all = evaluate({"type=q8_0"});
  EXPECT_GT(bytes(all), bytes(plain));  // rows as short as these take a block of 32 each
  for (const Json& some : {one, last}) EXPECT_NEAR(bytes(plain) - bytes(some), (bytes(plain) - bytes(all)) / 4, 1e-9);
  EXPECT_NE(one.at("ppl"), plain.at("ppl"));
  EXPECT_NE(one.at("ppl"), last.at("ppl"));
}

TEST_F(EvalPrograms, EvalKilledAndResumedIsIdentical) {
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

TEST_F(EvalPrograms, EvalGoesOnOnlyWithTheModelsConfigThatItBeganWith) {
  write_tokens_file(folder_ / "tokens.jsonl", 400, 70);
  auto words = with_text("eval", {"--method", "full", "--out", folder_ / "e.json"});
  ASSERT_EQ(run_and_interrupt("kvcalibrate", words, folder_ / "e.json.journal").status, 130);
  Json config = parse_json(slurp(folder_ / "model" / "config.json"), "config.json");
  config["rms_norm_eps"] = 0.5;
  std::ofstream(folder_ / "model" / "config.json") << dump_json(config);
  words.emplace_back("--resume");
  const Outcome other = run("kvcalibrate", words);
  EXPECT_EQ(other.status, 7);
  EXPECT_THAT(other.err, HasSubstr("model_config.norm_epsilon"));
}

TEST_F(EvalPrograms, EvalTimesPrefillAndDecodeApart) {
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
  const Outcome refused = run("kvcalibrate", with_text("eval", {"--method", "full", "--decode", "33"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--decode: found '33', expected a whole number from 0 to 32"));
}

TEST_F(EvalPrograms, EvalScoresTheLastTokensOfWindowsThatOverlap) {
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

TEST_F(EvalPrograms, ATextBeyondTheContextIsARemarkWherePositionsMatter) {
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
  EXPECT_THAT(said({"--method", "lagkv", "--reference", "none"}), HasSubstr(kRemark));
  const std::string slots = said({"--method", "dropping", "--set", "cache_size=64"});
  EXPECT_THAT(slots, ::testing::Not(HasSubstr(kRemark)));
  EXPECT_THAT(slots, HasSubstr(kFull));
  EXPECT_THAT(said({"--method", "dropping", "--set", "cache_size=64", "rope=post"}), HasSubstr(kRemark));
}

TEST_F(EvalPrograms, EvalSaysWhenThereIsNothingToCompress) {
  auto words = with_text("eval", {"--method", "lagkv", "--set", "sinks=30", "lag=8"});
  std::erase(words, "--quiet");
  const Outcome outcome = run("kvcalibrate", words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("note: documents of 32 tokens are all kept: lagkv has nothing to compress"));
}

TEST_F(EvalPrograms, EvalRefusesWhatItCannotRunInOneLine) {
  const auto refuse = [&](const std::vector<std::string>& how, const std::string& part) {
    const Outcome outcome = run("kvcalibrate", with_text("eval", how));
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refuse({"--method", "quest"}, "expected one of full, streaming");
  refuse({"--method", "freqkv"}, "--set cache_size: found nothing");
  refuse({"--method", "freqkv", "--set", "cache_size=16", "lag=4"},
         "--set lag: found a parameter that freqkv does not");
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

}  // namespace
}  // namespace kvs::testing
