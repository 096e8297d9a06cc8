// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline core {

/// Records that `place` (an option, or "FILE: /pointer") was read under its name of version 0.1. The programs print
/// each such name once, in a note, when they end.  Thread-safe
void note_old_name(std::string_view place, std::string_view name);

/// The notes so far, in order, each once: "--against is now --reference".
std::vector<std::string> old_name_notes();

}  // namespace kvs::inline core
