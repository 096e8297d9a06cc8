#include "tokenizer/split_patterns.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "tokenizer/split.h"

namespace kvs::inline tokenizer {

const std::string_view kGpt2Pattern = patterns::kGpt2;
const std::string_view kDigitPattern = patterns::kDigit;

std::optional<std::string_view> find_known_pattern(std::string_view pattern) {
  using namespace patterns;
  static constexpr std::array kKnown{
      kGpt2,      kGpt2Short,    kDigit,           kDigitThrees, kDigits,           kLlama3,       kLlama3Gguf,
      kCl100k,    kQwen2,        kQwen2Gguf,       kQwen35,      kQwen35Gguf,       kTekken,       kGpt4o,
      kLineBreak, kSpaceAtEnd,   kDeepseekLetters, kDeepseekCjk, kSpacePunctuation, kSpaceLetters, kDeepseekPunctuation,
      kDeepseek3, kDeepseek3Cjk, kSpaces};
  std::string canonical;  // files write line breaks literally or as escapes
  for (const char c : pattern) {
    if (c == '\r' || c == '\n') {
      canonical.append(c == '\r' ? "\\r" : "\\n");
    } else {
      canonical.push_back(c);
    }
  }
  const auto known = std::find(kKnown.begin(), kKnown.end(), canonical);
  if (known == kKnown.end()) return std::nullopt;
  return *known == kSpaceAtEnd ? kSpaceAtEndRun : *known;
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) noexcept {
  using namespace patterns;
  // Source: llama.cpp src/llama-vocab.cpp, llama_vocab::impl::load and llm_tokenizer_bpe.
  static const GgufPreTokenizer kGpt2Alone{{kGpt2}}, kDigitsThenGpt2{{kDigit, kGpt2}};
  static const GgufPreTokenizer kLlamaBpe{{kLlama3Gguf}, true, true}, kGlm4{{kLlama3Gguf}, true},
      kLlamaBpeMerging{{kLlama3Gguf}};
  static const GgufPreTokenizer kQwen{{kQwen2Gguf}}, kQwen35Alone{{kQwen35Gguf}};
  static const GgufPreTokenizer kDeepseekLlm{
      {kLineBreak, kDeepseekLetters, kDeepseekPunctuationGguf, kSpaceAtEndRun, kDeepseekCjkGguf, kDigits}};
  static const GgufPreTokenizer kDeepseekCoder{
      {kLineBreak, kSpaceLetters, kSpacePunctuation, kDeepseekCjkGguf, kDigit}};
  static const GgufPreTokenizer kDeepseekV3{{kDigitThrees, kDeepseek3Cjk, kDeepseek3}};
  static const GgufPreTokenizer kTekkenAlone{{kTekkenGguf}, true, true}, kGpt4oAlone{{kGpt4oGguf}};
  static const GgufPreTokenizer kSeedCoderAlone{{kSeedCoder}}, kBailingAlone{{kBailing}};
  static const GgufPreTokenizer kKimiK2Alone{{kKimiK2Gguf}}, kMiniCpm5{{kDigitThrees, kMiniCpm5Gguf}, true};
  static const GgufPreTokenizer kUfakzekaAlone{{kUfakzeka}};
  static const GgufPreTokenizer kBloomAlone{{kBloom}}, kViking{{kBloom, kDigit}};
  static const GgufPreTokenizer kDefault{{kPunctuationDefault, kGpt2, kDigits, kThreeAsciiDigits}};
  static const GgufPreTokenizer kFalcon{{kPunctuationFalcon, kGpt2, kThreeAsciiDigits}};
  static const std::array<std::pair<std::string_view, const GgufPreTokenizer*>, 69> kTable{{
      {"default", &kDefault},
      {"falcon", &kFalcon},
      {"smollm", &kDigitsThenGpt2},
      {"starcoder", &kDigitsThenGpt2},
      {"refact", &kDigitsThenGpt2},
      {"command-r", &kDigitsThenGpt2},
      {"codeshell", &kDigitsThenGpt2},
      {"exaone", &kDigitsThenGpt2},
      {"minerva-7b", &kDigitsThenGpt2},
      {"mellum2", &kDigitsThenGpt2},
      {"gpt-2", &kGpt2Alone},
      {"phi-2", &kGpt2Alone},
      {"mpt", &kGpt2Alone},
      {"olmo", &kGpt2Alone},
      {"jais", &kGpt2Alone},
      {"trillion", &kGpt2Alone},
      {"granite-docling", &kGpt2Alone},
      {"exaone4", &kGpt2Alone},
      {"gigachat", &kGpt2Alone},
      {"a.x-4.0", &kGpt2Alone},
      {"mellum", &kGpt2Alone},
      {"modern-bert", &kGpt2Alone},
      {"roberta-bpe", &kGpt2Alone},
      {"llama3", &kLlamaBpe},
      {"llama-v3", &kLlamaBpe},
      {"llama-bpe", &kLlamaBpe},
      {"falcon3", &kLlamaBpe},
      {"falcon-h1", &kLlamaBpe},
      {"pixtral", &kLlamaBpe},
      {"midm-2.0", &kLlamaBpe},
      {"lfm2", &kLlamaBpe},
      {"glm4", &kGlm4},
      {"chatglm-bpe", &kLlamaBpeMerging},
      {"dbrx", &kLlamaBpeMerging},
      {"smaug-bpe", &kLlamaBpeMerging},
      {"qwen2", &kQwen},
      {"deepseek-r1-qwen", &kQwen},
      {"kormo", &kQwen},
      {"stablelm2", &kQwen},
      {"megrez", &kQwen},
      {"hunyuan", &kQwen},
      {"solar-open", &kQwen},
      {"grok-2", &kQwen},
      {"deepseek-llm", &kDeepseekLlm},
      {"deepseek-coder", &kDeepseekCoder},
      {"deepseek-v3", &kDeepseekV3},
      {"hunyuan-dense", &kDeepseekV3},
      {"joyai-llm", &kDeepseekV3},
      {"tekken", &kTekkenAlone},
      {"gpt-4o", &kGpt4oAlone},
      {"llama4", &kGpt4oAlone},
      {"kanana2", &kGpt4oAlone},
      {"minimax-m2", &kGpt4oAlone},
      {"qwen35", &kQwen35Alone},
      {"seed-coder", &kSeedCoderAlone},
      {"bailingmoe", &kBailingAlone},
      {"bailingmoe2", &kBailingAlone},
      {"llada-moe", &kBailingAlone},
      {"bloom", &kBloomAlone},
      {"poro-chat", &kBloomAlone},
      {"gpt3-finnish", &kBloomAlone},
      {"viking", &kViking},
      {"kimi-k2", &kKimiK2Alone},
      {"minicpm5", &kMiniCpm5},
      {"ufakzeka", &kUfakzekaAlone},
      {"talkie", &kGpt4oAlone},
      {"f2llmv2", &kQwen},
      {"hy_v4", &kDeepseekV3},
      {"jina-v5-nano", &kLlamaBpe},
  }};
  const auto found = std::find_if(kTable.begin(), kTable.end(), [&](const auto& row) { return row.first == name; });
  return found == kTable.end() ? nullptr : found->second;
}

}  // namespace kvs::inline tokenizer
