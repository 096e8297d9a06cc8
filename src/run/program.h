#pragma once

#include <iosfwd>
#include <span>
#include <string_view>

#include "options/options.h"

namespace kvs::inline run {

/// One row of a program's table of commands.
struct Subcommand {
  std::string_view name;
  std::string_view summary;
  void (*run)(Arguments arguments);
  bool shared = false;  // several ranks can share its work (docs/scale.md)
};

/// The body of both mains: finds the command, runs it, and converts an error to a line on stderr and an exit status
/// (docs/errors.md). Never throws.
int run_program(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands, int argc,
                char** argv) noexcept;

}  // namespace kvs::inline run
