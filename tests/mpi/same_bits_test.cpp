// SPDX-License-Identifier: Apache-2.0
#include "tests/mpi/ranks.h"

namespace kvs::testing {
namespace {

class SameBits : public Ranks, public ::testing::WithParamInterface<SharedCommand> {};

TEST_P(SameBits, AnyNumberOfRanksWritesTheBytesOfOneProcess) {
  const std::string& program = GetParam().program;
  const auto words = words_of(GetParam());
  const auto expected = outputs_after(run(program, words), program);
  for (const int ranks : {1, 2, 3, 7})
    EXPECT_EQ(difference(expected, outputs_after(run_ranks(ranks, program, words), program)), "") << "ranks: " << ranks;
}

INSTANTIATE_TEST_SUITE_P(Commands, SameBits, ::testing::ValuesIn(shared_commands()), name_of_command);

TEST_F(Ranks, ACaptureIsSharedAsAModelsDocumentsAre) {
  const std::string capture = folder_ / "states.h5";
  ASSERT_EQ(run("kvspectrum", with_text("capture", {"--states", "q_pre,k_pre,v", "--out", capture})).status, 0);
  const std::vector<std::string> words[] = {
      {"spectrum", "--capture", capture, "--threads", "1", "--quiet", "--out-dir", folder_ / "out" / "spectrum"},
      {"elitekv", "--capture", capture, "--elite", "2", "--threads", "1", "--quiet", "--out",
       folder_ / "out" / "elite.json"}};
  for (const auto& command : words) {
    const std::string program = command.front() == "spectrum" ? "kvspectrum" : "kvcalibrate";
    const auto expected = outputs_after(run(program, command), program);
    EXPECT_EQ(difference(expected, outputs_after(run_ranks(3, program, command), program)), "") << command.front();
  }
}

}  // namespace
}  // namespace kvs::testing
