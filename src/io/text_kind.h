#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "io/json.h"

namespace kvs {

/// How a file of texts is read.
enum class TextKind {
  kProse,  // it is one text
  kLines,  // JSONL: each line is an object with a `text`
};

/// By the ending of the name, upper and lower case alike: .jsonl, .ndjson and .jsonlines are lines of JSON, all others
/// prose. @throws Error kUnsupported for .json, which would be read as prose and is none.
TextKind text_kind(const std::filesystem::path& path);

/// The `text` of an object of JSONL. @throws Error kUnsupported for a chat without one, kInput if there is none.
const std::string& text_of_object(const JsonCursor& object);

/// Whether a name ends like that of a file of JSON lines.
bool is_json_lines(const std::filesystem::path& path);

/// `name` ends with `ending` (small letters), upper and lower case alike.
bool has_ending(std::string_view name, std::string_view ending);

}  // namespace kvs
