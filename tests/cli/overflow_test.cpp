// SPDX-License-Identifier: Apache-2.0
// Losses and activations at the ends of what a double and an f32 hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OverflowPrograms : public TextPrograms {
 protected:
  /// A copy of the model in which the weights of a tensor are `factor` times as large: those of the final norm, which
  /// are 1, make logits grow by as much.
  void write_loud_model(float factor, const std::string& name = "model.norm.weight") const {
    std::filesystem::remove_all(folder_ / "loud");
    std::filesystem::copy(folder_ / "model", folder_ / "loud");
    const std::filesystem::path path = folder_ / "loud" / "model.safetensors";
    std::string bytes = slurp(path);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const Json tensor = parse_json(bytes.substr(sizeof header, header), "header").at(name);
    const auto& ends = tensor.at("data_offsets");
    for (std::size_t at = ends[0].get<std::size_t>(); at < ends[1].get<std::size_t>(); at += sizeof factor) {
      float weight = 0;
      char* const place = bytes.data() + sizeof header + header + at;
      std::memcpy(&weight, place, sizeof weight);
      weight *= factor;
      std::memcpy(place, &weight, sizeof weight);
    }
    std::ofstream(path, std::ios::binary) << bytes;
  }
  Outcome on_loud(const std::string& program, const std::string& command, const std::vector<std::string>& more) const {
    return run(program, with_text(command, more, "loud"));
  }
  /// Words that a file or a terminal must not hold.
  static auto is_finite_text() { return Not(AnyOf(HasSubstr("nan"), HasSubstr("inf"))); }
};

TEST_F(OverflowPrograms, KeepLossesThatNoPerplexityHolds) {
  write_loud_model(1e5F);
  const Outcome made = on_loud("kvcalibrate", "eval",
                               {"--method", "lagkv", "--set", "lag=8", "ratio=0.25", "sinks=2", "--out",
                                folder_ / "e.json", "--save-config", folder_ / "c.json"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("perplexity e^"));
  EXPECT_THAT(made.out, is_finite_text());
  const Json result = config("e.json");
  EXPECT_TRUE(result.at("ppl").is_null());
  EXPECT_GT(result.at("nll_mean").get<double>(), 709);
  EXPECT_GT(result.at("full").at("nll_mean").get<double>(), 709);
  EXPECT_NEAR(result.at("ratio").at("nll_difference").get<double>(),
              result.at("nll_mean").get<double>() - result.at("full").at("nll_mean").get<double>(), 1e-6);
  expect_valid("c.json");
}

TEST_F(OverflowPrograms, AreDrawnAndReportedByEveryCommandThatMeasuresThem) {
  write_loud_model(1e5F);
  const std::vector<std::vector<std::string>> commands{
      {"kvspectrum", "retain", "--sinks", "2", "--prefix", "20"},
      {"kvcalibrate", "faedkv", "--chunks", "4", "--sinks", "2", "--recent", "3", "--sweep", "2"},
      {"kvcalibrate", "elitekv", "--cache-ratio", "0.5", "--rank-step", "4"},
      {"kvcalibrate", "lagkv", "--budget", "75%"},
      {"kvcalibrate", "compare", "--methods", "full,streaming", "--types", "q8_0", "--types-with-methods", "none",
       "--budgets", "75%", "--timed-tokens", "0"}};
  std::filesystem::create_directory(folder_ / "results");
  for (const std::vector<std::string>& words : commands) {
    std::vector<std::string> more(words.begin() + 2, words.end());
    more.insert(more.end(), {"--out", folder_ / ("results/" + words[1] + ".json")});
    const Outcome made = on_loud(words[0], words[1], more);
    ASSERT_EQ(made.status, 0) << words[1] << ": " << made.err;
    EXPECT_THAT(made.out, is_finite_text()) << words[1];
  }
  const Outcome page = run("kvspectrum", {"report", folder_ / "results", "--out", folder_ / "r.html"});
  ASSERT_EQ(page.status, 0) << page.err;
  EXPECT_THAT(slurp(folder_ / "r.html"), Not(AnyOf(HasSubstr("inf\u00A0%"), HasSubstr(">nan"), HasSubstr("\"nan"))));
}

TEST_F(OverflowPrograms, AreRefusedInTheHeadAndLeaveNothing) {
  write_loud_model(3e38F);
  const std::vector<std::vector<std::string>> commands{
      {"eval", "--method", "full", "--out", folder_ / "out.json"},
      {"latency", "--lengths", "8", "--decode", "4", "--repeats", "1", "--out", folder_ / "out.json"},
      {"generate", "--model", folder_ / "loud", "--prompt", "rays", "--max-new-tokens", "4"}};
  for (const std::vector<std::string>& words : commands) {
    const std::vector<std::string> more(words.begin() + 1, words.end());
    const Outcome refused = words[0] == "generate" ? run("kvcalibrate", words) : on_loud("kvcalibrate", words[0], more);
    EXPECT_EQ(refused.status, 5) << words[0] << ": " << refused.out;
    EXPECT_THAT(refused.err, HasSubstr("output layer: found NaN or infinity in its logits")) << words[0];
    for (const char* name : {"out.json", "out.svg", "out.png"}) EXPECT_FALSE(std::filesystem::exists(folder_ / name));
  }
  std::vector<std::string> good = commands[1];
  good.erase(good.begin());
  EXPECT_EQ(run("kvcalibrate", with_text("latency", good)).status, 0) << "nothing stands in the way";
}

// Keys that f16 does not hold, which is the one kind that has no blocks.
TEST_F(OverflowPrograms, OfEveryStoreOfABudgetEndTheRunWithoutAConfig) {
  write_loud_model(1e7F, "model.layers.1.self_attn.k_proj.weight");
  const Outcome refused = on_loud("kvcalibrate", "store", {"--budget", "100%", "--out", folder_ / "s.json"});
  EXPECT_EQ(refused.status, 5) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("with every setting of the budget"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s.json"));
}

}  // namespace
}  // namespace kvs::testing
