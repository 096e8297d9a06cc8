#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace kvs::testing {

/// `ranks` processes of a program under mpirun.
Outcome run_ranks(int ranks, const std::string& program, const std::vector<std::string>& arguments);

/// The same; once a unit of work stands in `state` and `milliseconds` more have passed, one of the processes whose
/// command line names `state`'s output is killed. @param victim  which, counted through them
Outcome run_ranks_and_kill_one(int ranks, const std::string& program, const std::vector<std::string>& arguments,
                               const std::filesystem::path& output, const std::string& ending, unsigned victim,
                               int milliseconds);

/// The programs on a tiny model and texts of mixed lengths.
class Ranks : public ::testing::Test {
 protected:
  void SetUp() override;
  /// COMMAND on the texts, one thread a rank.
  std::vector<std::string> with_text(const std::string& command, const std::vector<std::string>& more) const {
    return words_on_texts(command, folder_ / "model", folder_ / "tokens.jsonl", more);
  }
  void write_texts(std::size_t lines) const;

  TemporaryFolder folder_;
};

/// Lines of standard error that are the program's own, not mpirun's.
std::vector<std::string> own_lines(const std::string& err, const std::string& program);

}  // namespace kvs::testing
