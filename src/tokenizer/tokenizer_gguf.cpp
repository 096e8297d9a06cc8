#include <utility>

#include "tokenizer/gguf_vocabulary.h"

namespace kvs::inline tokenizer {

std::unique_ptr<Tokenizer> load_tokenizer_gguf(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string_view model = file.get_string(kKey);
  if (model != "gpt2" && model != "llama") {
    throw Error(ErrorCode::kUnsupported, file.path().string() + ": " + std::string(kKey),
                "found " + GgufVocabulary::shown(model) + ", expected \"gpt2\" or \"llama\"");
  }
  GgufVocabulary vocabulary = read_gguf_vocabulary(file);
  TokenizerParts parts = model == "gpt2" ? read_gguf_bpe(std::move(vocabulary)) : read_gguf_spm(std::move(vocabulary));
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace kvs::inline tokenizer
