// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace kvs::inline tasks {

/// The prompts of a file as ids, and the file's digest.
struct PromptFile {
  std::vector<std::vector<std::int32_t>> prompts;  // none of them empty
  std::string sha256;
};

/// Reads a *.jsonl file with one object per line: `prompt`, a text, or `messages`, a list of objects with `role` and
/// `content`. Other members are ignored.
/// @param chat  writes prompts and messages as conversations, a prompt as the user's message; nullptr: a prompt is the
/// text that the model reads
/// @param bos   first id of every prompt, or -1
/// @throws Error kInput "FILE: line N: …", also for `messages` without `chat`; kData if there is no prompt
PromptFile read_prompts(const std::filesystem::path& path, const Tokenizer& tokenizer, const ChatFormat* chat,
                        std::int32_t bos);

}  // namespace kvs::inline tasks
