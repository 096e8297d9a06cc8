// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "io/json.h"

namespace kvs::inline io {

/// The way to read a file of texts.
enum class TextKind {
  kProse,  // the file is one text
  kLines,  // JSONL: each line is an object with a `text`
};

/// Decides by the ending of the name, ignoring case: .jsonl, .ndjson and .jsonlines are lines of JSON, all others are
/// prose. @throws Error kUnsupported for .json, which is not prose.
TextKind text_kind(const std::filesystem::path& path);

/// Returns the `text` of a JSONL object. @throws Error kUnsupported for a chat without `text`, kInput for any other
/// object without it.
const std::string& text_of_object(const JsonCursor& object);

/// Returns true if the name has the ending of a file of JSON lines.
bool is_json_lines(const std::filesystem::path& path);

/// Returns true if `name` ends with `ending` (lower case), ignoring case.
bool has_ending(std::string_view name, std::string_view ending);

}  // namespace kvs::inline io
