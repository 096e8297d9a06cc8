#include <algorithm>

#include "tests/mpi/ranks.h"

namespace kvs::testing {
namespace {

using ::testing::IsEmpty;

/// A command and what it writes.
struct SharedCommand {
  std::string program, command;
  std::vector<std::string> more;  // with OUT for the output's path
  std::string out;                // a file or a folder
};

const SharedCommand kCommands[] = {
    {"kvcalibrate",
     "eval",
     {"--method", "lagkv", "--set", "lag=4", "ratio=0.25", "sinks=2", "--out", "OUT"},
     "eval.json"},
    {"kvspectrum", "capture", {"--states", "q_pre,k_pre,v", "--store", "bf16", "--out", "OUT"}, "capture.h5"},
    {"kvspectrum", "capture", {"--split", "4", "--out", "OUT"}, "parts.h5"},
    {"kvspectrum", "spectrum", {"--out-dir", "OUT"}, "spectrum"},
    {"kvcalibrate", "faedkv", {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out", "OUT"}, "faedkv.json"},
    {"kvcalibrate",
     "faedkv",
     {"--chunks", "4", "--sinks", "2", "--recent", "3", "--passes", "90", "--sweep", "2,3", "--out", "OUT"},
     "race.json"},
    {"kvcalibrate", "elitekv", {"--elite", "2", "--rank", "12", "--out", "OUT"}, "factors.json"},
    {"kvcalibrate", "elitekv", {"--elite", "2", "--norm", "1", "--out", "OUT"}, "distance.json"},
    {"kvcalibrate", "freqkv", {"--budget", "50%", "--by-layer", "1", "--out", "OUT"}, "freqkv.json"},
    {"kvcalibrate", "lagkv", {"--budget", "75%", "--out", "OUT"}, "lagkv.json"},
    {"kvcalibrate",
     "compare",
     {"--full", "--decode", "0", "--methods", "full,streaming,lagkv", "--budgets", "50%", "--out", "OUT"},
     "compare.json"},
};

class SameBits : public Ranks, public ::testing::WithParamInterface<SharedCommand> {};

TEST_P(SameBits, AnyNumberOfRanksWritesTheBytesOfOneProcess) {
  if (IsSkipped()) return;
  const auto& [program, command, more, out] = GetParam();
  std::vector<std::string> words = more;
  const std::filesystem::path folder = folder_ / "out";
  std::ranges::replace(words, std::string("OUT"), std::string(folder / out));
  words = with_text(command, words);
  const auto outputs_after = [&](const Outcome& outcome) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(own_lines(outcome.err, program), IsEmpty());
    const auto files = contents_of(folder);
    std::filesystem::remove_all(folder);
    return files;
  };
  std::filesystem::create_directory(folder);
  const auto expected = outputs_after(run(program, words));
  ASSERT_FALSE(expected.empty());
  for (const int ranks : {1, 2, 3, 7}) {
    std::filesystem::create_directory(folder);
    const auto found = outputs_after(run_ranks(ranks, program, words));
    ASSERT_EQ(found.size(), expected.size()) << ranks;
    for (const auto& [name, bytes] : expected) EXPECT_TRUE(found.at(name) == bytes) << name << ", ranks: " << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, SameBits, ::testing::ValuesIn(kCommands), [](const auto& instance) {
  std::string name = instance.param.out.substr(0, instance.param.out.find('.'));
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace kvs::testing
