// SPDX-License-Identifier: Apache-2.0
#include "tasks/object_lines.h"

#include "core/error.h"
#include "core/utf8.h"
#include "io/file_kind.h"
#include "io/json_line.h"
#include "tasks/haystack.h"
#include "texts/text_source.h"

namespace kvs::inline tasks {
namespace {

/// @throws Error kInput naming the first invalid byte.
void check_utf8(std::string_view text, const std::string& where) {
  const std::size_t bad = find_invalid_utf8(text);
  if (bad != std::string_view::npos)
    throw Error(ErrorCode::kInput, where,
                "byte " + std::to_string(bad) + ": found " + printable(text.substr(bad, 1)) + ", expected UTF-8");
}

}  // namespace

std::string read_object_lines(const std::filesystem::path& path, const std::function<void(const JsonCursor&)>& take) {
  TextSource source = TextSource::open(path);
  refuse_foreign_text(source.peek(kKindBytes), source.name());
  for (TextSource::Line line; source.next(line);) {
    if (line.is_too_long) throw Error(ErrorCode::kInput, source.name(), too_long_problem(line.number));
    if (stripped(line.bytes).empty()) continue;
    const std::string where = source.name() + ": line " + std::to_string(line.number);
    check_utf8(line.bytes, where);
    const Json object = parse_json_line(line.bytes, where, line.has_newline);
    take(JsonCursor(object, where));
  }
  return source.finish_digest();
}

}  // namespace kvs::inline tasks
