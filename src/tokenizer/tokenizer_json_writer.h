#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace kvs {

class GgufFile;

/// Writes the tokenizer of a GGUF file as tokenizer.json and tokenizer_config.json into `folder`, for the Hugging Face
/// library `tokenizers` and Transformers.
/// @return why it cannot be expressed, in which case nothing is written; empty if it can: byte-level BPE (gpt2) and
/// SentencePiece's (llama)
std::string write_tokenizer_json(const GgufFile& file, const std::filesystem::path& folder);

}  // namespace kvs
