// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/cli/compare_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ComparePrograms, ScoresEveryConfigurationAsEvalDoes) {
  const Json result = compared("c.json", {"--no-early-stop"});
  const Json& streaming = one(result, "streaming", 0.5);
  EXPECT_EQ(streaming.at("settings"), Json({{"cache_size", 16}}));
  EXPECT_EQ(streaming.at("documents"), 6);
  auto words = with_text("eval", {"--method", "streaming", "--set", "cache_size=16", "prefix=20", "--json"});
  const Json found = parse_json(run("kvcalibrate", words).out, "eval");
  for (const char* same : {"ppl", "top1", "bytes_ratio"}) EXPECT_EQ(streaming.at(same), found.at(same)) << same;
  // A configuration keeps each document's mean, eval the sum of all: the last digit may differ.
  EXPECT_DOUBLE_EQ(streaming.at("kl").get<double>(), found.at("kl").get<double>());
  EXPECT_EQ(streaming.at("ratio").at("ppl"), found.at("ratio").at("ppl"));
  EXPECT_EQ(streaming.at("ratio").at("over"), "documents");
  for (const std::size_t end : {0, 1})
    EXPECT_DOUBLE_EQ(streaming.at("ratio").at("interval")[end].get<double>(),
                     found.at("ratio").at("interval")[end].get<double>());
  EXPECT_EQ(result.at("full").at("ppl"), found.at("full").at("ppl"));
  EXPECT_THAT(one(result, "lagkv", 0.5).at("error").get<std::string>(), HasSubstr("needs 100 %"));
  EXPECT_EQ(one(result, "gqa, heads 1", 0.5).at("bytes_ratio"), 0.5);
}

TEST_F(ComparePrograms, TheBestIsWrittenAndIsWhatWasScored) {
  const Json result =
      compared("c.json", {"--no-early-stop", "--best-dir", folder_ / "best", "--max-ppl-increase", "1%,80%"});
  const Json& smallest = result.at("smallest");
  ASSERT_EQ(smallest.size(), 2);
  EXPECT_TRUE(smallest[0].at("configuration").is_null());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "best/smallest_1.json"));
  const Json& small = result.at("configurations").at(smallest[1].at("configuration").get<std::size_t>());
  EXPECT_LE(small.at("ratio").at("interval")[1], 1.8);
  EXPECT_NEAR(perplexity({"--config", folder_ / "best/smallest_80.json", "--set", "prefix=20"}),
              small.at("ppl").get<double>(), 1e-9);
  for (const Json& best : result.at("best")) {
    const Json& found = result.at("configurations").at(best.at("configuration").get<std::size_t>());
    EXPECT_LE(found.at("bytes_ratio"), best.at("budget"));
    const Json &leader = result.at("configurations").at(best.at("leader").get<std::size_t>()),
               &alike = best.at("alike");
    EXPECT_TRUE(best.at("configuration") == best.at("leader") ||
                std::ranges::count(alike, best.at("configuration")) == 1);
    for (const Json& other : result.at("configurations")) {
      const bool rivals = other.at("documents") == 6 && other.at("bytes_ratio") <= best.at("budget");
      EXPECT_TRUE(!rivals || leader.at("kl") <= other.at("kl"));
    }
    const std::string name = best.at("budget") == 0.5 ? "best/best_50.json" : "best/best_75.json";
    expect_valid(name);
    EXPECT_NEAR(perplexity({"--config", folder_ / name, "--set", "prefix=20"}), found.at("ppl").get<double>(), 1e-9);
  }
}

TEST_F(ComparePrograms, AConfigTakesPart) {
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json", {"--rank", "8"})).status, 0);
  const Json result = compared("c.json", {"--no-early-stop", "--config", folder_ / "e.json"});
  const auto& configurations = result.at("configurations");
  const auto found =
      std::ranges::find_if(configurations, [](const Json& one) { return one.at("method") == "elitekv"; });
  ASSERT_NE(found, configurations.end());
  EXPECT_EQ(found->at("label"), "elitekv (e)");
  EXPECT_EQ(found->at("documents"), 6);
  EXPECT_EQ(found->at("calibrated"), true);
  EXPECT_GE(found->at("budget"), found->at("bytes_ratio"));
}

TEST_F(ComparePrograms, AConfigThatIsTheBestIsCopiedWithItsFiles) {
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json", {"--rank", "8"})).status, 0);
  const Outcome outcome =
      run("kvcalibrate",
          with_text("compare", {"--methods", "full", "--types", "q8_0", "--types-with-methods", "none", "--budgets",
                                "60%,55%", "--no-early-stop", "--timed-tokens", "0", "--config", folder_ / "e.json",
                                "--best-dir", folder_ / "best", "--out", folder_ / "c.json"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name : {"best/best_60.json", "best/best_55.json"}) {
    EXPECT_EQ(config(name).at("method"), "elitekv");
    expect_valid(name);
  }
  EXPECT_EQ(slurp(folder_ / "best/e.safetensors"), slurp(folder_ / "e.safetensors"));
}

TEST_F(ComparePrograms, ConfigsOfOneNameAreToldApart) {
  for (const char* folder : {"x", "y"}) {
    std::filesystem::create_directory(folder_ / folder);
    ASSERT_EQ(run("kvcalibrate", elitekv(std::string(folder) + "/transform_50.json", {"--rank", "8"})).status, 0);
  }
  const std::vector<std::string> configs{"--config", folder_ / "x/transform_50.json", "--config",
                                         folder_ / "y/transform_50.json"};
  const Json result = compared("c.json", configs);
  std::set<std::string> labels;
  for (const Json& one : result.at("configurations"))
    if (one.at("method") == "elitekv") labels.insert(one.at("label"));
  EXPECT_EQ(labels, (std::set<std::string>{"elitekv (" + (folder_ / "x/transform_50.json").string() + ")",
                                           "elitekv (" + (folder_ / "y/transform_50.json").string() + ")"}));
  // Two files of one name cannot both be copied.
  auto words = calibrated({"--config", folder_ / "x/transform_50.json", "--best-dir", folder_ / "best", "--force"});
  const Outcome outcome = run("kvcalibrate", compare("c.json", words));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("expected names of their own for --best-dir"));
}

TEST_F(ComparePrograms, AFileInTheWayOfTensorsIsNotReplaced) {
  std::filesystem::create_directory(folder_ / "best");
  std::ofstream(folder_ / "best/transform_50.safetensors") << "mine";
  const Outcome outcome = run("kvcalibrate", compare("c.json", calibrated({"--best-dir", folder_ / "best"})));
  EXPECT_EQ(outcome.status, 7);
  EXPECT_EQ(slurp(folder_ / "best/transform_50.safetensors"), "mine");
}

TEST_F(ComparePrograms, AConfigThatIsTheBestHasTheStorageTypeOfItsConfiguration) {
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json", {"--rank", "8"})).status, 0);
  const Outcome outcome =
      run("kvcalibrate",
          with_text("compare", {"--methods", "full", "--types", "q8_0", "--types-with-methods", "fp8", "--budgets",
                                "30%", "--prefix", "0", "--no-early-stop", "--timed-tokens", "0", "--config",
                                folder_ / "e.json", "--best-dir", folder_ / "best", "--out", folder_ / "c.json"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json result = config("c.json"), best = config("best/best_30.json");
  const Json& found = result.at("configurations").at(result.at("best")[0].at("configuration").get<std::size_t>());
  ASSERT_EQ(found.at("label"), "elitekv (e) + fp8");
  EXPECT_EQ(best.at("parameters").at("type"), "fp8");
  expect_valid("best/best_30.json");
  EXPECT_NEAR(perplexity({"--config", folder_ / "best/best_30.json"}), found.at("ppl").get<double>(), 1e-9);
}

TEST_F(ComparePrograms, ConfigsSayWhatTheyWereCalibratedAndScoredOn) {
  std::ofstream(folder_ / "other.txt") << std::string(100, 'a') + ' ' + std::string(100, 'b');
  for (const std::string method : {"freqkv", "transform"}) {
    const Json result = compared(
        "c.json", {"--no-early-stop", "--force", "--best-dir", folder_ / "best", "--methods", method, "--timed-tokens",
                   "0", "--calibration-text", folder_ / "other.txt", "--calibration-window", "48"});
    const Json& found = result.at("configurations").at(result.at("best")[1].at("configuration").get<std::size_t>());
    const bool calibrated = found.at("calibrated").get<bool>();
    EXPECT_TRUE(calibrated || method == "freqkv");  // the paper's FreqKV is alike, and plainer
    EXPECT_EQ(result.at("calibration").at("documents"), 4);
    const Json best = config("best/best_50.json"), &calibration = best.at("calibration"), &quality = best.at("quality");
    EXPECT_EQ(calibration.at("text_sha256"), calibrated ? result.at("calibration").at("text_sha256") : Json::array());
    EXPECT_EQ(calibration.at("documents"), calibrated ? 4 : 0);
    EXPECT_EQ(calibration.at("tokens"), calibrated ? 4 * 48 : 0);
    EXPECT_EQ(quality.at("text_sha256"), result.at("text_sha256"));
    EXPECT_EQ(quality.at("documents"), 6);
    EXPECT_EQ(quality.at("tokens_scored"), 6 * 11);
  }
}

TEST_F(ComparePrograms, FoldersThatCannotTakeTheBestAreRefusedFirst) {
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json", {"--rank", "8"})).status, 0);
  const auto refuse = [&](int status, const std::string& folder, const std::string& part) {
    const Outcome outcome =
        run("kvcalibrate", compare("c.json", {"--config", folder_ / "e.json", "--best-dir", folder_ / folder}));
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "c.json.journal"));
  };
  refuse(2, "model/best", "lies in the folder of the model");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model/best"));
  refuse(2, ".", "e.safetensors: the output is the input");
  refuse(6, "tokens.jsonl/best", "tokens.jsonl/best: cannot be made a folder");
  refuse(2, std::string(256, 'b'), "found a file name of 256 bytes");
  std::filesystem::create_directory(folder_ / "other");
  std::ofstream(folder_ / "other/e.safetensors") << "kept";
  refuse(7, "other", "other/e.safetensors");
  EXPECT_EQ(slurp(folder_ / "other/e.safetensors"), "kept");
}

TEST_F(ComparePrograms, MethodsAreCalibratedOnAnotherTextFirst) {
  const Json result = compared("c.json", calibrated({"--no-early-stop", "--best-dir", folder_ / "best"}));
  EXPECT_EQ(result.at("calibration").at("documents"), 3);
  EXPECT_EQ(result.at("calibration").at("tokens"), 48);
  std::size_t found = 0;
  for (const Json& one : result.at("configurations")) {
    EXPECT_EQ(one.at("calibrated"), one.at("label").get<std::string>().find_first_of(",(") != std::string::npos);
    if (!one.at("calibrated").get<bool>() || !one.at("error").is_null()) continue;
    ++found;
    EXPECT_LE(one.at("bytes_ratio"), one.at("budget"));
    EXPECT_EQ(one.at("documents"), 6);
  }
  EXPECT_GE(found, 2U);
  for (const std::string method : {"triattention", "oscar", "elitekv", "transform", "transform-head", "kvtc"})
    for (const std::string share : {"75", "50"}) expect_valid("c_calibrated/" + method + "_" + share + ".json");
  EXPECT_EQ(one(result, "elitekv (elitekv_50)", 0.5).at("bytes_ratio"), 0.5);
  EXPECT_LT(one(result, "transform (transform_50)", 0.5).at("kl"), 0.1);
  EXPECT_EQ(config("c_calibrated/triattention_50.json").at("parameters").at("cache_size"), 16);
  EXPECT_LE(one(result, "oscar (oscar_50)", 0.5).at("bytes_ratio"), 0.5);
  EXPECT_EQ(config("c_calibrated/transform-head_50.json").at("parameters").at("rows"), "head");
  EXPECT_LT(one(result, "transform (transform-head_50)", 0.5).at("kl"), 0.1);
  EXPECT_EQ(one(result, "transform (transform_50)", 0.5).at("form"), "random access");
  EXPECT_EQ(one(result, "transform (transform-head_50)", 0.5).at("form"), "in attention");
  EXPECT_EQ(one(result, "kvtc (kvtc_50)", 0.5).at("form"), "storage");
}

TEST_F(ComparePrograms, WhatIsScoredIsNotCalibratedOn) {
  const auto more = calibrated();
  const auto scored = [&](const std::string& windows) {
    std::vector<std::string> words{"compare",  "--model", folder_ / "model", "--text", folder_ / "other.txt",
                                   "--window", "32",      "--windows",       windows,  "--budgets",
                                   "50%",      "--out",   folder_ / "c.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run("kvcalibrate", words);
  };
  const Outcome outcome = scored("4:");  // the calibration's three windows of 48 tokens end at 144
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("window 2 of"));
  EXPECT_THAT(outcome.err, HasSubstr("which is part of what is scored"));
  EXPECT_EQ(scored("5:").status, 0);
  EXPECT_THAT(run("kvcalibrate", compare("c.json", {"--methods", "elitekv"})).err,
              HasSubstr("needs --calibration-text"));
}

TEST_F(ComparePrograms, WhatIsScoredIsKnownUnderEveryName) {
  namespace fs = std::filesystem;
  (void)calibrated();  // writes the text
  const fs::path text = folder_ / "other.txt";
  fs::create_symlink(text, folder_ / "link.txt");
  fs::create_hard_link(text, folder_ / "hard.txt");
  fs::copy_file(text, folder_ / "copy.md");
  fs::create_directory(folder_ / "texts");
  fs::copy_file(text, folder_ / "texts/a.txt");
  std::ofstream(folder_ / "lines.jsonl") << Json{{"text", "short"}}.dump() << '\n'
                                         << Json{{"text", slurp(text)}}.dump() << '\n';
  std::ofstream(folder_ / "changed.txt") << slurp(text) << "and more";
  const auto compared_with = [&](const std::string& name, const std::string& windows) {
    return run("kvcalibrate", {"compare",
                               "--model",
                               folder_ / "model",
                               "--text",
                               text,
                               "--window",
                               "32",
                               "--windows",
                               windows,
                               "--budgets",
                               "50%",
                               "--methods",
                               "freqkv",
                               "--types-with-methods",
                               "none",
                               "--calibration-text",
                               name,
                               "--calibration-window",
                               "48",
                               "--calibration-documents",
                               "3",
                               "--out",
                               folder_ / "c.json",
                               "--force"});
  };
  const std::string dotted = text.parent_path() / "." / "texts" / ".." / "other.txt", relative = fs::relative(text);
  for (const std::string& name :
       {text.string(), dotted, relative, (folder_ / "link.txt").string(), (folder_ / "hard.txt").string(),
        (folder_ / "copy.md").string(), (folder_ / "texts").string(), (folder_ / "lines.jsonl").string()}) {
    const Outcome outcome = compared_with(name, "4:");
    EXPECT_EQ(outcome.status, 2) << name << '\n' << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("which is part of what is scored")) << name;
    EXPECT_EQ(compared_with(name, "5:").status, 0) << name;
  }
  EXPECT_EQ(compared_with(folder_ / "changed.txt", "4:").status, 0);  // another text
}

TEST_F(ComparePrograms, TheFrontIsAskedAndTimed) {
  const std::vector<std::string> needle{"--no-early-stop", "--task", "needle",          "--lengths", "600",
                                        "--depths",        "0,100",  "--answer-tokens", "4"};
  const Json result = compared("c.json", needle);
  EXPECT_EQ(result.at("full").at("retrieval").at("questions"), 2);
  const Json speeds = config("c_speed.json").at("configurations");
  std::size_t front = 0;
  for (const Json& one : result.at("configurations")) {
    EXPECT_EQ(one.at("retrieval").is_null(), !one.at("pareto_front").get<bool>());
    if (!one.at("pareto_front").get<bool>()) continue;
    EXPECT_EQ(speeds.at(front).at("label"), one.at("label"));
    EXPECT_GT(speeds.at(front++).at("decode_tokens_per_second"), 0);
    EXPECT_TRUE(one.at("retrieval").contains("difference"));
  }
  EXPECT_EQ(front, speeds.size());
  EXPECT_GE(front, 2U);
  auto words = compare("again.json", {"--no-early-stop", "--task", "needle", "--lengths", "4000"});
  EXPECT_EQ(run("kvcalibrate", words).status, 4);
}

TEST_F(ComparePrograms, WhatIsCalibratedOnNothingSaysSo) {
  const Json result = compared(
      "c.json", {"--no-early-stop", "--best-dir", folder_ / "best", "--methods", "streaming", "--timed-tokens", "0"});
  const Json best = config("best/best_50.json"), &calibration = best.at("calibration");
  EXPECT_EQ(calibration.at("documents"), 0);
  EXPECT_EQ(calibration.at("tokens"), 0);
  EXPECT_EQ(calibration.at("text_sha256"), Json::array());
  EXPECT_EQ(best.at("quality").at("documents"), 6);
  expect_valid("best/best_50.json");
}

TEST_F(ComparePrograms, ShortTimesCalibrateOnFewDocumentsAndSaySo) {
  std::string text;
  for (int n = 0; n < 60 * 48; ++n) text += static_cast<char>('a' + n * n % 23);
  std::ofstream(folder_ / "other.txt") << text;
  auto words = compare("c.json", {"--methods", "lagkv,transform", "--calibration-text", folder_ / "other.txt",
                                  "--calibration-window", "48", "--time", "15s", "--timed-tokens", "0"});
  std::erase(words, "--quiet");
  const Outcome outcome = run("kvcalibrate", words);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json result = config("c.json"), &calibration = result.at("calibration");
  EXPECT_EQ(calibration.at("given"), 60);
  ASSERT_TRUE(calibration.at("methods").contains("transform")) << outcome.err;
  const Json& used = calibration.at("methods").at("transform");
  EXPECT_GE(used, 4);
  if (used < 60) {
    EXPECT_THAT(outcome.err, HasSubstr("transform is calibrated on " + used.dump() + " of 60 documents"));
  }
  // A method for which no time was left is not said to be calibrated.
  EXPECT_EQ(outcome.err.find("lagkv is calibrated on") != std::string::npos,
            calibration.at("methods").contains("lagkv") && calibration.at("methods").at("lagkv") < 60)
      << outcome.err;
  for (const Json& one : result.at("configurations")) {
    EXPECT_EQ(one.at("shared_bytes") > 0, !one.at("config").is_null()) << one.at("label");
    if (!one.at("config").is_null() && one.at("documents") > 0) {
      EXPECT_THAT(outcome.out, HasSubstr("held once for all sequences"));
    }
  }
  for (const std::string share : {"75", "50"})
    if (const std::string name = "c_calibrated/transform_" + share + ".json"; std::filesystem::exists(folder_ / name)) {
      EXPECT_EQ(config(name).at("calibration").at("documents"), used);
      EXPECT_EQ(config(name).at("calibration").at("tokens"), 48 * used.get<std::size_t>());
    }
}

TEST_F(ComparePrograms, WithoutTimeNothingIsScoredTimedOrAsked) {
  std::ofstream(folder_ / "c_speed.json") << "of a run before";
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json", {"--rank", "8"})).status, 0);
  const Json result = compared("c.json", {"--force", "--time", "0.000001s", "--task", "needle", "--lengths", "600",
                                          "--config", folder_ / "e.json"});
  EXPECT_EQ(one(result, "elitekv (e)", 0.75).at("error"), "no time was left");
  const Outcome report = run("kvspectrum", {"report", folder_ / "c.json", "--out", folder_ / "c.html"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(result.at("full").at("retrieval").is_null());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c_speed.json"));
  std::size_t scored = 0;
  for (const Json& one : result.at("configurations")) scored += one.at("documents").get<std::size_t>();
  EXPECT_EQ(scored, 0U);  // loading took longer
  EXPECT_EQ(one(result, "streaming", 0.5).at("error"), "no time was left");
}

TEST_F(ComparePrograms, RefusesWhatItCannotDo) {
  const auto refuse = [&](int status, const std::vector<std::string>& more, const std::string& part) {
    const Outcome outcome = run("kvcalibrate", with_text("compare", more));
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  const std::string out = folder_ / "c.json";
  refuse(2, {}, "--out");
  refuse(2, {"--out", out, "--budgets", "0%"}, "found '0%', expected a share");
  refuse(2, {"--out", out, "--budgets", "120%"}, "120%");
  refuse(2, {"--out", out, "--budgets", "50%,50.0001%"}, "found 50% twice, expected shares that differ");
  refuse(2, {"--out", out, "--methods", "slimkv"}, "slimkv");
  refuse(2, {"--out", out, "--methods", "streeming"}, "transform-head, kvtc, did you mean streaming?");
  refuse(2, {"--out", out, "--methods", "h2o,h2o"}, "--methods: found h2o twice");
  refuse(2, {"--out", out, "--methods", "h2o", "--types", "q8_0"}, "--types: needs full among --methods");
  refuse(2, {"--out", out, "--methods", "full", "--types-with-methods", "q8_0"}, "none takes a storage type");
  refuse(2, {"--out", out, "--task", "ruler-cwe", "--depths", "7"}, "--depths: cannot be combined with");
  EXPECT_THAT(
      run("kvcalibrate", {"compare", "--model", "no such", "--text", "no such", "--task", "kneedle", "--out", out}).err,
      HasSubstr("did you mean needle?"));
  refuse(2, {"--out", out, "--timed-tokens", "31"}, "--timed-tokens");
  refuse(2, {"--out", out, "--time", "soon"}, "expected a time such as");
  refuse(2, {"--out", out, "--time", "1m", "--no-early-stop"}, "--no-early-stop");
  refuse(2, {"--out", out, "--prefix", "31"}, "--prefix");
  refuse(2, {"--out", out, "--max-ppl-increase", "0%"}, "--max-ppl-increase: found '0%', expected a share");
  refuse(2, {"--out", out, "--calibration-window", "48"}, "--calibration-window: needs --calibration-text");
  refuse(2, {"--out", out, "--calibration-dir", folder_ / "d"}, "--calibration-dir: needs --calibration-text");
  refuse(2, {"--out", out, "--depths", "0"}, "--depths: needs --task");
  refuse(2, {"--out", out, "--methods", "streaming", "--calibration-text", "no such"}, "none is calibrated");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c_calibrated"));
  ASSERT_EQ(run("kvcalibrate", faedkv("f.json")).status, 0);
  write_tiny_model(folder_ / "other", TinyKind::kBiased);
  auto words = with_text("compare", {"--out", out, "--config", folder_ / "f.json"}, "other");
  const Outcome outcome = run("kvcalibrate", words);
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(outcome.err, HasSubstr("found a config for model, expected one for other: "));
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace kvs::testing
