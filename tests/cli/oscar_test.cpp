// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/calibrate_fixture.h"
#include "tests/model/formula_model.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class OscarProgram : public CalibratePrograms {
 protected:
  Outcome oscar(const std::string& out, std::vector<std::string> more, const std::string& model = "model") const {
    more.insert(more.end(), {"--out", folder_ / out});
    return run("kvcalibrate", with_text("oscar", more, model));
  }
  void refuse(const Outcome& outcome, int status, const std::string& part) const {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
};

TEST_F(OscarProgram, CalibratesWhatEvalRuns) {
  const Outcome made = oscar("o.json", {"--sinks", "2", "--recent", "6", "--group", "4", "--clip-k", "1"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("o.json: rotations of 4 layers"));
  EXPECT_THAT(made.out, HasSubstr("calibration documents: "));
  expect_valid("o.json");
  const Json parameters = config("o.json").at("parameters");
  EXPECT_EQ(parameters.at("recent"), 6);
  EXPECT_EQ(parameters.at("clip_v"), 0.92);
  const Json coded = evaluated({"--config", folder_ / "o.json"});
  EXPECT_EQ(coded.at("bytes_ratio"), (8 * 16 + 24 * 10.0) / (32 * 16));  // 10 bits a value: 2 and 32 of each 4
  EXPECT_GT(coded.at("kl").get<double>(), 1e-6);
  EXPECT_EQ(coded.at("shared_bytes"), config("o.json").at("quality").at("shared_bytes"));
}

TEST_F(OscarProgram, OneSetOfRotationsServesEveryCache) {
  ASSERT_EQ(oscar("a.json", {"--recent", "4"}).status, 0);
  ASSERT_EQ(oscar("b.json", {"--sinks", "1", "--recent", "8", "--group", "4"}).status, 0);
  EXPECT_EQ(slurp(folder_ / "a.safetensors"), slurp(folder_ / "b.safetensors"));
  EXPECT_EQ(perplexity({"--config", folder_ / "b.json"}),
            perplexity({"--config", folder_ / "a.json", "--set", "sinks=1", "recent=8", "group=4"}));
  const Json all = evaluated({"--config", folder_ / "a.json", "--set", "recent=100"});
  EXPECT_LT(all.at("kl").get<double>(), 1e-9);
  EXPECT_EQ(all.at("bytes_ratio"), 1);
}

TEST_F(OscarProgram, KilledAndResumedIsIdentical) {
  expect_resumed_is_identical("oscar", {"--sinks", "1", "--recent", "4"});
}

TEST_F(OscarProgram, RefusesWhatCannotBe) {
  refuse(oscar("x.json", {"--group", "6"}), 2, "--group: found 6, expected a power of two");
  refuse(oscar("x.json", {"--recent", "0"}), 2, "--recent: found 0, expected a whole number of at least 1");
  refuse(oscar("x.json", {"--clip-k", "1.5"}), 2, "--clip-k");
  refuse(run("kvcalibrate", with_text("eval", {"--method", "oscar"})), 2, "found oscar, which --config takes");
  for (const auto& [name, part] : {std::pair("gemma4_shared", "found layers that read the keys and values of others"),
                                   std::pair("hunyuan_v1_dense", "found a model that normalises its keys after RoPE"),
                                   std::pair("deepseek_v2", "found layers whose keys and values come from one row")}) {
    const std::string path = std::string(KVS_GOLDEN_DIR "/parity/") + name + ".json";
    const Json golden = parse_json(slurp(path), path);
    test::write_formula_model(folder_ / name, golden["config"], golden["tensors"]);
    refuse(oscar("x.json", {}, name), 4, part);
  }
}

TEST_F(OscarProgram, RunsWithWindowsCapsSinksAndHeadsOfTwelveValues) {
  for (const std::string name : {"gemma2", "gpt_oss", "llama"}) {
    const std::string path = KVS_GOLDEN_DIR "/parity/" + name + ".json";
    const Json golden = parse_json(slurp(path), path);
    test::write_formula_model(folder_ / name, golden["config"], golden["tensors"]);
    std::ofstream(folder_ / "ids.txt") << "[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]";
    const std::vector<std::string> text{"--model",           folder_ / name, "--tokens-file",
                                        folder_ / "ids.txt", "--window",     "16"};
    std::vector<std::string> words{"oscar", "--sinks", "1", "--recent", "4", "--out", folder_ / (name + "_o.json")};
    words.insert(words.end(), text.begin(), text.end());
    const Outcome made = run("kvcalibrate", words);
    EXPECT_EQ(made.status, 0) << made.err;
    words = {"eval", "--config", folder_ / (name + "_o.json"), "--json"};
    words.insert(words.end(), text.begin(), text.end());
    const Outcome evaluated = run("kvcalibrate", words);
    ASSERT_EQ(evaluated.status, 0) << evaluated.err;
    EXPECT_LT(parse_json(evaluated.out, "eval").at("kl").get<double>(), 0.5);
  }
}

TEST_F(OscarProgram, ReadsTheFileBesideItsConfigWithCare) {
  ASSERT_EQ(oscar("o.json", {}).status, 0);
  refuse(export_to("elitekv", "o.json", "x"), 4, "found oscar, expected elitekv");
  std::ofstream(folder_ / "o.safetensors", std::ios::app) << ' ';
  refuse(run("kvcalibrate", {"validate", folder_ / "o.json"}), 3, "/files/0/sha256");
  Json without = config("o.json");
  without["files"] = Json::array();
  std::ofstream(folder_ / "o.json") << without.dump();
  refuse(run("kvcalibrate", {"validate", folder_ / "o.json"}), 3, "/files");
}

}  // namespace
}  // namespace kvs::testing
