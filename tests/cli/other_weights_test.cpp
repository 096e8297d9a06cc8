// SPDX-License-Identifier: Apache-2.0
// --other-weights: a config of a model's bf16 weights for its Q4 file, and what must be equal for that.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// lagkv.json and elite.json of "model"; "other" is the same model with another weight.
class OtherWeights : public TextPrograms {
 protected:
  OtherWeights() {
    write_text_of_rays(folder_ / "text.txt", 8);
    EXPECT_EQ(run("kvcalibrate",
                  on("eval", "model",
                     {"--method", "lagkv", "--set", "lag=4", "sinks=2", "--save-config", folder_ / "lagkv.json"}))
                  .status,
              0);
    EXPECT_EQ(run("kvcalibrate", elitekv("elite.json")).status, 0);
    std::filesystem::copy(folder_ / "model", folder_ / "other");
    std::string weights = slurp(folder_ / "other/model.safetensors");
    weights[weights.size() - 4] = static_cast<char>(weights[weights.size() - 4] ^ 1);
    std::ofstream(folder_ / "other/model.safetensors", std::ios::binary) << weights;
  }
  std::vector<std::string> on(const std::string& command, const std::string& model,
                              std::vector<std::string> more) const {
    std::vector<std::string> words{command, "--model", folder_ / model};
    if (command != "export") words.insert(words.end(), {"--threads", "1"});
    if (command != "generate" && command != "export")
      words.insert(words.end(), {"--text", folder_ / "text.txt", "--window", "32"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome eval(std::vector<std::string> more, const std::string& config = "lagkv.json") const {
    more.insert(more.end(), {"--config", folder_ / config, "--json"});
    return run("kvcalibrate", on("eval", "other", more));
  }
  void edit(const std::string& name, const std::function<void(Json&)>& change) const {
    Json value = config(name);
    change(value);
    std::ofstream(folder_ / name) << dump_json(value);
  }
};

TEST_F(OtherWeights, AreTakenWhereAskedForWithANoteAndARecord) {
  const Outcome refused = eval({});
  EXPECT_EQ(refused.status, 7);
  EXPECT_THAT(refused.err, HasSubstr("sha256"));
  const Outcome taken = eval({"--other-weights"});
  ASSERT_EQ(taken.status, 0) << taken.err;
  EXPECT_THAT(taken.err, AllOf(HasSubstr("lagkv.json was made for other weights"), Not(HasSubstr("which tokenizer"))));
  EXPECT_EQ(parse_json(taken.out, "eval").at("config_model_sha256"), config("lagkv.json").at("model").at("sha256"));
}

TEST_F(OtherWeights, OfAnotherTokenizerOrShapeAreRefused) {
  edit("other/tokenizer.json",
       [](Json& tokenizer) { std::swap(tokenizer["model"]["vocab"]["a"], tokenizer["model"]["vocab"]["b"]); });
  const Outcome tokenizer = eval({"--other-weights"});
  EXPECT_EQ(tokenizer.status, 7);
  EXPECT_THAT(tokenizer.err, HasSubstr("tokenizer_sha256"));
  edit("lagkv.json", [](Json& config) { config["calibration"].erase("tokenizer_sha256"); });
  const Outcome unknown = eval({"--other-weights"});
  EXPECT_EQ(unknown.status, 0);
  EXPECT_THAT(unknown.err, HasSubstr("does not say which tokenizer it was made with"));
  edit("lagkv.json", [](Json& config) { config["model"]["rope"]["frequencies"][0][1] = 5; });
  const Outcome rope = eval({"--other-weights"});
  EXPECT_EQ(rope.status, 7);
  EXPECT_THAT(rope.err, AllOf(HasSubstr("rope.frequencies of other values"), Not(HasSubstr("sha256"))));
}

TEST_F(OtherWeights, AreTakenByEveryCommandThatReadsConfigs) {
  const std::string config = folder_ / "lagkv.json", elite = folder_ / "elite.json";
  const std::vector<std::vector<std::string>> commands{
      on("generate", "other", {"--prompt", "the rays", "--max-new-tokens", "2", "--config", config}),
      on("latency", "other", {"--lengths", "8", "--decode", "2", "--repeats", "1", "--config", config}),
      on("compare", "other",
         {"--methods", "full", "--types", "q8_0", "--timed-tokens", "0", "--config", config, "--out",
          folder_ / "compare.json"}),
      on("export", "other", {"--to", "elitekv-rank", "--config", elite, "--out", folder_ / "ranks.pkl"})};
  for (std::vector<std::string> words : commands) {
    EXPECT_EQ(run("kvcalibrate", words).status, 7) << words.front();
    words.insert(words.end(), {"--other-weights", "--json"});
    const Outcome taken = run("kvcalibrate", words);
    EXPECT_EQ(taken.status, 0) << words.front() << taken.err;
    EXPECT_THAT(taken.out, HasSubstr("\"config_model_sha256\"")) << words.front();
  }
}

TEST_F(OtherWeights, NeedAConfig) {
  const Outcome refused = run("kvcalibrate", on("eval", "other", {"--method", "full", "--other-weights"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--other-weights: needs --"));
}

}  // namespace
}  // namespace kvs::testing
