#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace kvs {

/// The chat templates of a Hugging Face folder by name, as Transformers finds them: chat_template.jinja and
/// additional_chat_templates/NAME.jinja, else `chat_template` of tokenizer_config.json, one text or a list. "default"
/// is the one that is taken unless another is asked for. @throws Error kInput if a file is malformed.
std::map<std::string, std::string> read_chat_templates(const std::filesystem::path& folder);

}  // namespace kvs
