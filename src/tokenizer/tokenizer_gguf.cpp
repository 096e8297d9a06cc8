// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tokenizer/gguf_vocabulary.h"

namespace kvs::inline tokenizer {

std::unique_ptr<Tokenizer> load_tokenizer_gguf(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string_view model = file.get_string(kKey);
  if (model != "gpt2" && model != "llama" && model != "gemma4") {
    throw Error(ErrorCode::kUnsupported, file.path().string() + ": " + std::string(kKey),
                "found " + GgufVocabulary::shown(model) + ", expected \"gpt2\", \"llama\" or \"gemma4\"");
  }
  GgufVocabulary vocabulary = read_gguf_vocabulary(file);
  auto* const read = model == "gpt2" ? read_gguf_bpe : model == "llama" ? read_gguf_spm : read_gguf_gemma;
  TokenizerParts parts = read(std::move(vocabulary));
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace kvs::inline tokenizer
