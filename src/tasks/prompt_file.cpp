// SPDX-License-Identifier: Apache-2.0
#include "tasks/prompt_file.h"

#include "core/error.h"
#include "tasks/object_lines.h"

namespace kvs::inline tasks {
namespace {

std::vector<ChatMessage> messages_of(const JsonCursor& line) {
  if (!line.has("messages")) return {{"user", line.at("prompt").string()}};
  const JsonCursor list = line.at("messages");
  std::vector<ChatMessage> messages;
  for (std::size_t n = 0; n < list.array_size(); ++n)
    messages.push_back({list.at(n).at("role").string(), list.at(n).at("content").string()});
  return messages;
}

ChatText text_of(const JsonCursor& line, const ChatFormat* chat) {
  if (line.has("prompt") == line.has("messages")) line.fail("either prompt or messages");
  if (chat != nullptr) return chat->render(messages_of(line), line.place());
  if (line.has("messages")) line.at("messages").fail("prompt, or --chat");
  return {line.at("prompt").string()};
}

}  // namespace

PromptFile read_prompts(const std::filesystem::path& path, const Tokenizer& tokenizer, const ChatFormat* chat,
                        std::int32_t bos) {
  PromptFile file;
  file.sha256 = read_object_lines(path, [&](const JsonCursor& line) {
    const auto [text, contents] = text_of(line, chat);
    std::vector<std::int32_t> ids = tokenizer.encode_turns(text, contents);
    begin_with(bos, ids);
    if (ids.empty()) line.fail("a prompt of at least one token");
    file.prompts.push_back(std::move(ids));
  });
  if (file.prompts.empty()) throw Error(ErrorCode::kData, path.string(), "found no prompt, expected one a line");
  return file;
}

}  // namespace kvs::inline tasks
