// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace kvs::inline io {
class GgufFile;
}  // namespace kvs::inline io

namespace kvs::inline tokenizer {

/// Writes the tokenizer of a GGUF file to `folder` as tokenizer.json and tokenizer_config.json, for the Hugging Face
/// library `tokenizers` and Transformers. Supports byte-level BPE (gpt2) and SentencePiece's BPE (llama).
/// @return why the tokenizer cannot be expressed (nothing is written then); empty on success
std::string write_tokenizer_json(const GgufFile& file, const std::filesystem::path& folder);

}  // namespace kvs::inline tokenizer
