// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"

namespace kvs::inline model {

/// Returns the chat template of a model's files, a Jinja text: `default` of read_chat_templates(), or
/// `tokenizer.chat_template` of a GGUF file. Empty if they have none. @throws Error kInput if a file is malformed.
std::string chat_template_of(const ModelSource& source);

/// Returns the ids that end a text which the model generates, ascending. Of a folder: `eos_token_id` of
/// generation_config.json, otherwise of config.json, as Transformers reads them. Of a GGUF file: its end tokens, and
/// the tokens that llama.cpp knows by their texts.
/// @param tokenizer  of the model; nullptr: tokens are not found by their texts
/// @throws Error kInput if a file is malformed, or an id is outside the vocabulary
std::vector<std::int32_t> end_tokens_of(const ModelSource& source, const Tokenizer* tokenizer);

}  // namespace kvs::inline model
