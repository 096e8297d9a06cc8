// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace kvs::testing {

/// A command on the tiny model.
struct FaultyCommand {
  std::string name, program;
  std::vector<std::string> arguments;
  bool resumes = false;              // takes --resume
  std::vector<std::string> outputs;  // files that it replaces with --force, below its folder
  bool varies = false;               // outputs hold times
  bool prints = false;               // and writes no file
};

/// @param inputs  a folder that make_fault_inputs() filled;  @param out  where outputs go
std::vector<FaultyCommand> faulty_commands(const TemporaryFolder& inputs, const std::string& out,
                                           const std::string& threads = "1");

std::size_t faulty_command_count();
std::string name_of_faulty_command(std::size_t index);

void make_fault_inputs(const TemporaryFolder& inputs);

/// Returns whether every place is tried (KVS_FAULTS=all) or only a few.
bool tries_all();

}  // namespace kvs::testing
