// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/options.h"

namespace kvs::inline options {

/// A program with its commands, for completions and the manual page.
struct ProgramText {
  std::string name, purpose, version;
  std::vector<std::pair<std::string, CommandText>> commands;
};

/// Returns a script that completes commands, options and values.
/// @param shell  bash, zsh or fish  @throws Error kUsage for any other shell.
std::string completion_script(const ProgramText& program, std::string_view shell);

/// Returns the manual page (section 1) in the macros of man(7).
std::string manual_page(const ProgramText& program);

}  // namespace kvs::inline options
