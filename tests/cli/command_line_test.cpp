// SPDX-License-Identifier: Apache-2.0
// Odd command lines, for every command.
#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

/// The commands that `program --help` lists.
Words commands_of(const std::string& program) {
  std::istringstream lines(run(program, {"--help"}).out);
  Words commands;
  bool listed = false;
  for (std::string line; std::getline(lines, line) && !(listed && line.empty());) {
    if (listed) commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (line == "Commands:") listed = true;
  }
  return commands;
}

/// One line, which is no bug's, and a status for usage or for a file that is not there.
void expect_refused(const std::string& program, const Words& words) {
  const Outcome outcome = run(program, words);
  std::string shown;
  for (const std::string& word : words) shown += " [" + word.substr(0, 40) + "]";
  EXPECT_THAT(outcome.status, AnyOf(2, 3)) << program << shown << ": " << outcome.err.substr(0, 3000);
  EXPECT_THAT(outcome.err, StartsWith(program + ": error: ")) << shown;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << shown;
  EXPECT_LT(outcome.err.size(), 3000U) << shown;
  EXPECT_EQ(outcome.out, "") << shown;
}

class CommandLines : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Program, CommandLines, ::testing::Values("kvspectrum", "kvcalibrate"));

TEST_P(CommandLines, OddOnesAreRefusedInOneLine) {
  const std::string program = GetParam(), longest(100'000, 'x');
  const Words commands = commands_of(program);
  ASSERT_GT(commands.size(), 5U);
  const std::vector<Words> odd{{"--"},
                               {"--", "m"},
                               {"--", "--", "m"},
                               {"--", "--help"},
                               {"m", "--", "-"},
                               {""},
                               {"", ""},
                               {"-"},
                               {"---"},
                               {"--="},
                               {"--=x"},
                               {"-x"},
                               {"--out"},
                               {"--out="},
                               {"--out", ""},
                               {"--out", "--"},
                               {"--model", "--", "m"},
                               {"--model", "a", "--model", "b"},
                               {"--quiet", "--quiet"},
                               {"--quiet=yes"},
                               {"--stray word", "x"},
                               {"--stray word=x"},
                               {"--*"},
                               {"--" + longest},
                               {longest},
                               {"--out", longest},
                               {"\n"},
                               {"--\x1b[31m"},
                               {"--out", "\xff"}};
  for (const std::string& command : commands)
    for (Words words : odd) {
      if (command == "doctor" && words == Words{"--"}) continue;  // the command has no required option
      words.insert(words.begin(), command);
      expect_refused(program, words);
    }
}

TEST_P(CommandLines, OddCommandsAreRefusedInOneLine) {
  for (const Words& words :
       std::vector<Words>{{}, {""}, {"--"}, {"--", "info"}, {"-"}, {"--x"}, {std::string(9'999, 'x')}})
    expect_refused(GetParam(), words);
}

TEST(CommandLine, WordsAfterTwoDashesAreValues) {
  const TemporaryFolder folder;
  const Outcome named = run("kvspectrum", {"info", "--", "-m"});
  EXPECT_EQ(named.status, 3);
  EXPECT_THAT(named.err, HasSubstr("-m: no such file or folder"));
  write_tiny_model(folder / "model");
  EXPECT_EQ(run("kvspectrum", {"info", "--json", "--", folder / "model"}).status, 0);
}

}  // namespace
}  // namespace kvs::testing
