// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/calibrate_fixture.h"
#include "tests/model/formula_model.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class TriattentionProgram : public CalibratePrograms {
 protected:
  Outcome triattention(const std::string& out, std::vector<std::string> settings,
                       const std::string& model = "model") const {
    settings.insert(settings.begin(), "--set");
    settings.insert(settings.end(), {"--out", folder_ / out});
    return run("kvcalibrate", with_text("triattention", settings, model));
  }
  void refuse(const Outcome& outcome, int status, const std::string& part) const {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
};

TEST_F(TriattentionProgram, CalibratesWhatEvalRuns) {
  const Outcome made = triattention("t.json", {"cache_size=12", "interval=4"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("t.json: mean queries of 4 layers"));
  expect_valid("t.json");
  for (const Json& length : config("t.json").at("calibration").at("resultant_length")) {
    EXPECT_GT(length, 0);
    EXPECT_LT(length, 1);
  }
  const Json small = evaluated({"--config", folder_ / "t.json"});
  EXPECT_EQ(small.at("compressions"), 6 * 5);  // of 32 tokens the 13th, 17th, 21st, 25th and 29th find it full
}

TEST_F(TriattentionProgram, OneSetOfStatisticsServesEveryCache) {
  ASSERT_EQ(triattention("a.json", {"cache_size=12", "interval=4"}).status, 0);
  ASSERT_EQ(triattention("b.json", {"cache_size=20,16,24,20", "interval=2", "sinks=1", "type=f16"}).status, 0);
  EXPECT_EQ(slurp(folder_ / "a.safetensors"), slurp(folder_ / "b.safetensors"));
  EXPECT_EQ(perplexity({"--config", folder_ / "b.json"}),
            perplexity({"--config", folder_ / "a.json", "--set", "cache_size=20,16,24,20", "interval=2", "sinks=1",
                        "type=f16"}));
  const Json all = evaluated({"--config", folder_ / "a.json", "--set", "cache_size=40", "interval=1"});
  EXPECT_EQ(all.at("compressions"), 0);
  EXPECT_LT(all.at("kl").get<double>(), 1e-9);
}

TEST_F(TriattentionProgram, KilledAndResumedIsIdentical) {
  expect_resumed_is_identical("triattention", {"--set", "cache_size=12", "interval=4"});
}

TEST_F(TriattentionProgram, RefusesWhatCannotBe) {
  refuse(triattention("x.json", {"interval=4"}), 2, "--set");
  refuse(triattention("x.json", {"cache_size=64"}), 2,
         "--set cache_size: found 64, expected a whole number of at least 129");
  refuse(triattention("x.json", {"cache_size=64", "lag=4"}), 2, "lag");
  refuse(run("kvcalibrate", with_text("eval", {"--method", "triattention", "--set", "cache_size=300"})), 2,
         "--method: found triattention, which --config takes: kvcalibrate triattention makes one");
  const std::string path = KVS_GOLDEN_DIR "/parity/deepseek_v2.json";
  const Json golden = parse_json(slurp(path), path);
  test::write_formula_model(folder_ / "latent", golden["config"], golden["tensors"]);
  refuse(triattention("x.json", {"cache_size=12", "interval=4"}, "latent"), 4, "found latent attention");
}

TEST_F(TriattentionProgram, ReadsTheFileBesideItsConfigWithCare) {
  ASSERT_EQ(triattention("t.json", {"cache_size=12", "interval=4"}).status, 0);
  std::ofstream(folder_ / "t.safetensors", std::ios::app) << ' ';
  refuse(run("kvcalibrate", {"validate", folder_ / "t.json"}), 3, "/files/0/sha256");
  Json without = config("t.json");
  without["files"] = Json::array();
  std::ofstream(folder_ / "t.json") << without.dump();
  refuse(run("kvcalibrate", {"validate", folder_ / "t.json"}), 3, "/files");
}

TEST_F(TriattentionProgram, ExportsItsStatistics) {
  ASSERT_EQ(triattention("t.json", {"cache_size=12", "interval=4"}).status, 0);
  const Outcome done = export_to("triattention", "t.json", "t.pt");
  ASSERT_EQ(done.status, 0) << done.err;
  const std::string file = slurp(folder_ / "t.pt");
  EXPECT_TRUE(file.starts_with("PK\3\4"));
  EXPECT_THAT(file, HasSubstr("layer03_head05"));
  // 4 layers, 6 query heads, 4 RoPE chunks, 3 numbers of f32 each
  EXPECT_GT(file.size(), 4U * 6 * 4 * 3 * 4);
  ASSERT_EQ(run("kvcalibrate", with_text("elitekv", {"--elite", "2", "--out", folder_ / "e.json"})).status, 0);
  refuse(export_to("triattention", "e.json", "x.pt"), 4, "found elitekv, expected triattention");
}

}  // namespace
}  // namespace kvs::testing
