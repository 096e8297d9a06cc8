// SPDX-License-Identifier: Apache-2.0
#include "io/text_kind.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace kvs::inline io {

bool has_ending(std::string_view name, std::string_view ending) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return name.size() >= ending.size() &&
         std::ranges::equal(name.substr(name.size() - ending.size()), ending, {}, small);
}

bool is_json_lines(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 3> kEndings{".jsonl", ".ndjson", ".jsonlines"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return has_ending(path.native(), ending); });
}

const std::string& text_of_object(const JsonCursor& object) {
  for (const char* chat : {"messages", "conversations"})
    if (!object.has("text") && object.has(chat))
      throw Error(ErrorCode::kUnsupported, object.place(),
                  "found `" + std::string(chat) +
                      "` and no `text`, expected a text: messages need a chat template, and none is applied");
  return object.at("text").string();
}

TextKind text_kind(const std::filesystem::path& path) {
  if (is_json_lines(path)) return TextKind::kLines;
  if (has_ending(path.native(), ".json"))
    throw Error(ErrorCode::kUnsupported, path.native(),
                "found a JSON file, expected UTF-8 text or JSONL; name it .jsonl if each line is an object, or convert "
                "it first: jq -c '.[]' FILE > FILE.jsonl");
  return TextKind::kProse;
}

}  // namespace kvs::inline io
