// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "io/json.h"

namespace kvs::inline tasks {

/// Reads a *.jsonl file with one object per line and calls take() with each, named "FILE: line N". Blank lines are
/// skipped. @return the SHA-256 of the file
/// @throws Error kInput for a line that is too long, invalid UTF-8 or malformed; what take() throws
std::string read_object_lines(const std::filesystem::path& path, const std::function<void(const JsonCursor&)>& take);

}  // namespace kvs::inline tasks
