// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/gguf_writer.h"

namespace kvs::inline tokenizer {

/// Adds the tokenizer of a Hugging Face folder to a GGUF file's metadata. Its tokenizer.json must be BPE: byte-level
/// with splits that llama.cpp has, or SentencePiece's kind with byte fallback.
/// @param tokens  size of the model's vocabulary; ids beyond the tokenizer's become unused tokens
/// @param notes  receives the differences between llama.cpp and Transformers
/// @return why the tokenizer cannot be expressed (nothing is added then); empty on success
/// @throws Error like load_tokenizer_json()
std::string add_tokenizer_json(const std::filesystem::path& folder, std::size_t tokens, GgufMetadataWriter& metadata,
                               std::vector<std::string>& notes);

}  // namespace kvs::inline tokenizer
