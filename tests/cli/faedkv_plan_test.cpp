// SPDX-License-Identifier: Apache-2.0
// The plan of an ablation is made of options and sizes alone: no file of these command lines exists.
#include <gmock/gmock.h>

#include <sstream>

#include "calibrate/faedkv/options.h"
#include "core/error.h"

namespace kvs::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kLayers = 4, kDocuments = 3, kTokens = 64;

FaedkvPlan plan_of(std::vector<std::string> more) {
  more.insert(more.end(), {"--model", "no-model", "--tokens-file", "no-tokens", "--out", "none.json", "--window", "64",
                           "--sinks", "2", "--recent", "6"});
  std::ostringstream help;
  OptionTable table("kvcalibrate faedkv", "", {});
  add_faedkv_options(table);
  table.value("model", "PATH", "")
      .value("tokens-file", "FILE", "")
      .value("window", "T", "")
      .value("seed", "N", "", "0");
  const auto options = table.parse(more, help);
  return faedkv_plan(*options, options->indices("layers", kLayers), kDocuments, kTokens);
}

std::string refusal_of(const std::vector<std::string>& more) {
  try {
    (void)plan_of(more);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "taken";
}

TEST(FaedkvPlanOfOptions, FiltersThePrefixBetweenSinksAndRecentTokens) {
  const FaedkvPlan plan = plan_of({"--chunks", "4", "--layers", "1-2", "--keep", "0.25"});
  EXPECT_EQ(plan.setup.prefix, 48U);  // three quarters of 64
  EXPECT_EQ(plan.setup.filtered(), 40U);
  EXPECT_THAT(plan.layers, ElementsAre(1, 2));
  EXPECT_THAT(plan.chunk_counts, ElementsAre(4));
  EXPECT_EQ(plan.keep, 0.25);
  EXPECT_FALSE(plan.race);
}

TEST(FaedkvPlanOfOptions, ASweepAddsChunkCountsOnce) {
  EXPECT_THAT(plan_of({"--chunks", "4", "--sweep", "2,4,8,2"}).chunk_counts, ElementsAre(4, 2, 8));
}

TEST(FaedkvPlanOfOptions, ARaceNeedsPassesForTwoDocumentsOfEachChunk) {
  // 4 layers of 4 chunks are 16 variants.
  EXPECT_EQ(plan_of({"--chunks", "4", "--confidence", "0.9"}).race->passes, 16 * kDocuments);
  EXPECT_EQ(plan_of({"--chunks", "4", "--passes", "32", "--seed", "7"}).race->seed, 7U);
  EXPECT_THAT(refusal_of({"--chunks", "4", "--passes", "31"}), HasSubstr("--passes: found 31, expected at least 32"));
}

TEST(FaedkvPlanOfOptions, RefusesWhatTheModelOrTheDocumentsDoNotHave) {
  EXPECT_THAT(refusal_of({"--chunks", "4", "--layers", "4"}),
              HasSubstr("--layers: found '4', expected indices from 0 to 3"));
  EXPECT_THAT(refusal_of({"--chunks", "22"}), HasSubstr("--chunks"));  // of 40 tokens a DFT has 21 bins
  EXPECT_THAT(refusal_of({"--chunks", "4", "--prefix", "8"}), HasSubstr("--prefix: found 8 tokens"));
  EXPECT_THAT(refusal_of({"--chunks", "4", "--budget", "50%"}),
              HasSubstr("--chunks: cannot be combined with --budget"));
}

}  // namespace
}  // namespace kvs::testing
