// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>

#include "options/options.h"

namespace kvs::inline run {

/// A command of a program.
struct Subcommand {
  std::string_view name;
  OptionTable (*options)();
  void (*run)(const Options& options);
  bool shared = false;  // several ranks can share its work (docs/scale.md)
};

/// The body of both mains: finds the command, runs it, and converts an error to a line on stderr and an exit status
/// (docs/errors.md). Never throws.
int run_program(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands, int argc,
                char** argv) noexcept;

}  // namespace kvs::inline run
