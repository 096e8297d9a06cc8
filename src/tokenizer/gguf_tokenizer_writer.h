#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/gguf_writer.h"

namespace kvs {

/// Adds the tokenizer of a Hugging Face folder to a GGUF file's metadata: its tokenizer.json, which must be BPE,
/// byte-level with splits that llama.cpp knows or SentencePiece's kind with byte fallback.
/// @param tokens  the model's vocabulary: ids beyond the tokenizer's become unused tokens
/// @param notes  gets what llama.cpp does otherwise than Transformers
/// @return why it cannot be expressed, in which case nothing is added; empty if it can
/// @throws Error as load_tokenizer_json
std::string add_tokenizer_json(const std::filesystem::path& folder, std::size_t tokens, GgufMetadataWriter& metadata,
                               std::vector<std::string>& notes);

}  // namespace kvs
