// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace kvs::inline tokenizer {

/// Reads the chat templates of a Hugging Face folder, by name, from the files that Transformers reads:
/// chat_template.jinja and additional_chat_templates/NAME.jinja, otherwise `chat_template` of tokenizer_config.json, a
/// text or a list. "default" is used unless another is asked for. @throws Error kInput if a file is malformed.
std::map<std::string, std::string> read_chat_templates(const std::filesystem::path& folder);

}  // namespace kvs::inline tokenizer
