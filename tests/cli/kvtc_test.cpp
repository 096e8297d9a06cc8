// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/calibrate_fixture.h"
#include "tests/model/formula_model.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class KvtcProgram : public CalibratePrograms {
 protected:
  Outcome kvtc(const std::string& out, std::vector<std::string> more, const std::string& model = "model") const {
    more.insert(more.end(), {"--sinks", "1", "--recent", "2", "--block", "4", "--out", folder_ / out});
    return run("kvcalibrate", with_text("kvtc", more, model));
  }
  void refuse(const Outcome& outcome, int status, const std::string& part) const {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
};

TEST_F(KvtcProgram, CalibratesWhatEvalRuns) {
  const Outcome made = kvtc("most.json", {"--budget", "80%"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("bytes of codes a token"));
  EXPECT_THAT(made.out, HasSubstr("calibration documents: "));
  ASSERT_EQ(kvtc("half.json", {"--budget", "50%", "--recent-type", "q8_0"}).status, 0);
  expect_valid("most.json");
  expect_valid("half.json");
  const Json most = evaluated({"--config", folder_ / "most.json"}),
             half = evaluated({"--config", folder_ / "half.json"});
  EXPECT_LT(most.at("kl").get<double>(), 0.01);
  EXPECT_GT(half.at("kl"), most.at("kl"));
  EXPECT_LT(most.at("bytes_ratio").get<double>(), 0.85);
  EXPECT_LT(half.at("bytes_ratio"), most.at("bytes_ratio"));
  EXPECT_EQ(half.at("shared_bytes"), config("half.json").at("quality").at("shared_bytes"));
}

TEST_F(KvtcProgram, KilledAndResumedIsIdentical) {
  expect_resumed_is_identical("kvtc", {"--budget", "70%", "--sinks", "1", "--recent", "2", "--block", "4"});
}

TEST_F(KvtcProgram, RefusesWhatCannotBe) {
  refuse(kvtc("x.json", {"--budget", "5%"}), 2, "--budget: found ");
  refuse(kvtc("x.json", {"--budget", "50%", "--length", "7"}), 2,
         "--length: found 7 tokens, expected more than the 7 of --sinks, --recent and --block");
  refuse(kvtc("x.json", {"--budget", "50%", "--recent-type", "f32"}), 2, "--recent-type");
  refuse(run("kvcalibrate", with_text("eval", {"--method", "kvtc"})), 2, "found kvtc, which --config takes");
  ASSERT_EQ(kvtc("k.json", {"--budget", "70%"}).status, 0);
  refuse(run("kvcalibrate", with_text("eval", {"--config", folder_ / "k.json", "--set", "type=q8_0"})), 2,
         "cannot be combined with a --config of kvtc");
  for (const auto& [name, part] : {std::pair("gemma4_shared", "found layers that read the keys and values of others"),
                                   std::pair("hunyuan_v1_dense", "found a model that normalises its keys after RoPE"),
                                   std::pair("deepseek_v2", "found layers whose keys and values come from one row")}) {
    const std::string path = std::string(KVS_GOLDEN_DIR "/parity/") + name + ".json";
    const Json golden = parse_json(slurp(path), path);
    test::write_formula_model(folder_ / name, golden["config"], golden["tensors"]);
    refuse(kvtc("x.json", {"--budget", "50%"}, name), 4, part);
  }
}

TEST_F(KvtcProgram, AConfigOfAnotherModelOrFileIsRefused) {
  ASSERT_EQ(kvtc("k.json", {"--budget", "70%"}).status, 0);
  const std::string path = KVS_GOLDEN_DIR "/parity/llama.json";
  const Json golden = parse_json(slurp(path), path);
  test::write_formula_model(folder_ / "other", golden["config"], golden["tensors"]);
  refuse(run("kvcalibrate", with_text("eval", {"--config", folder_ / "k.json"}, "other")), 7, "k.json: ");
  const std::string whole = slurp(folder_ / "k.safetensors");
  std::ofstream(folder_ / "k.safetensors") << whole.substr(0, whole.size() / 2);
  refuse(run("kvcalibrate", with_text("eval", {"--config", folder_ / "k.json"})), 3, "/files/0/sha256");
}

}  // namespace
}  // namespace kvs::testing
