// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

TEST(CostProgram, KnowsGeometriesByNameAndByModel) {
  const Outcome named = run("kvcalibrate", {"cost", "--geometry", "llama2-7b", "--lengths", "8192"});
  EXPECT_EQ(named.status, 0) << named.err;
  EXPECT_THAT(named.out, HasSubstr("llama2-7b: 524288 bytes of cache a token"));
  EXPECT_THAT(named.out, HasSubstr("8192  143.43    125.84  125.88        0.0386         2        3         5"));
  const TemporaryFolder folder;
  write_tiny_model(folder / "model");
  const Outcome read = run("kvcalibrate", {"cost", "--model", folder / "model", "--json"});
  EXPECT_EQ(read.status, 0) << read.err;
  EXPECT_EQ(parse_json(read.out, "stdout").at("bytes_per_token"), 2 * 2 * 2 * 8 * 4);
}

TEST(CostProgram, RefusesWhatIsNoGeometryInOneLine) {
  const auto refuse = [](const std::vector<std::string>& words, const std::string& part) {
    const Outcome outcome = run("kvcalibrate", words);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refuse({"cost"}, "missing option --geometry NAME or --model PATH");
  refuse({"cost", "--geometry", "llama4"}, "--geometry: found 'llama4', expected one of llama2-7b");
  refuse({"cost", "--geometry", "llama2-7b", "--lengths", "0"}, "--lengths");
}

}  // namespace
}  // namespace kvs::testing
