// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace kvs::testing {

/// The command of one rank. `words` is the command line after the program's path; `before` precedes that path, such as
/// {"env", "NAME=VALUE"}.
struct Rank {
  std::vector<std::string> words, before = {};
};

/// `ranks` processes of a program under mpirun.
Outcome run_ranks(int ranks, const std::string& program, const std::vector<std::string>& words);
/// Ranks that differ.
Outcome run_ranks(const std::string& program, const std::vector<Rank>& ranks);

/// Which process of a run is killed, and when.
struct Kill {
  std::filesystem::path output;  // that the run's command line names
  std::string journal = "";      // ending of the file that must hold a record; empty: processes must exist
  int milliseconds = 0;          // after that
  unsigned victim = 0;           // of the processes by number, modulo how many there are
};
struct Killed {
  Outcome outcome;
  double seconds = 0;  // from the kill to the end of mpirun
};
Killed run_ranks_and_kill_one(int ranks, const std::string& program, const std::vector<std::string>& words,
                              const Kill& kill);

/// A command that ranks share, and its outputs.
struct SharedCommand {
  std::string program, command;
  std::vector<std::string> more;  // with OUT for the output's path
  std::string out;                // a file or a folder
};
inline void PrintTo(const SharedCommand& shared, std::ostream* out) { *out << shared.program << ' ' << shared.command; }
/// One of each kind.
std::vector<SharedCommand> shared_commands();
std::string name_of_command(const ::testing::TestParamInfo<SharedCommand>& info);

/// The programs on a tiny model and texts of mixed lengths.
class Ranks : public ::testing::Test {
 protected:
  void SetUp() override;
  /// COMMAND on the texts, one thread a rank.
  std::vector<std::string> with_text(const std::string& command, const std::vector<std::string>& more) const {
    return words_on_texts(command, folder_ / "model", folder_ / "tokens.jsonl", more);
  }
  /// The arguments of a shared command that writes into its own folder.
  std::vector<std::string> words_of(const SharedCommand& command) const;
  std::filesystem::path output_of(const SharedCommand& command) const { return folder_ / "out" / command.out; }
  /// Returns the outputs of a shared command and deletes them. Expects that the command succeeded and printed nothing.
  std::map<std::string, std::string> outputs_after(const Outcome& outcome, const std::string& program) const;
  void write_texts(std::size_t lines) const;

  TemporaryFolder folder_;
};

/// Lines of standard error that are the program's own, not mpirun's.
std::vector<std::string> own_lines(const std::string& err, const std::string& program);

}  // namespace kvs::testing
