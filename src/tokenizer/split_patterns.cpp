// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/split_patterns.h"

#include <algorithm>
#include <array>
#include <string>

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

namespace gguf_pre {

using namespace patterns;

// Source: llama.cpp src/llama-vocab.cpp, llama_vocab::impl::load and llm_tokenizer_bpe.
constexpr std::array kOfGpt2{kGpt2};
constexpr std::array kOfDigitsThenGpt2{kDigit, kGpt2};
constexpr std::array kOfLlamaBpe{kLlama3Gguf};
constexpr std::array kOfQwen{kQwen2Gguf};
constexpr std::array kOfQwen35{kQwen35Gguf};
constexpr std::array kOfDeepseekLlm{kLineBreak,     kDeepseekLetters, kDeepseekPunctuationGguf,
                                    kSpaceAtEndRun, kDeepseekCjkGguf, kDigits};
constexpr std::array kOfDeepseekCoder{kLineBreak, kSpaceLetters, kSpacePunctuation, kDeepseekCjkGguf, kDigit};
constexpr std::array kOfDeepseekV3{kDigitThrees, kDeepseek3Cjk, kDeepseek3};
constexpr std::array kOfTekken{kTekkenGguf};
constexpr std::array kOfGpt4o{kGpt4oGguf};
constexpr std::array kOfSeedCoder{kSeedCoder};
constexpr std::array kOfBailing{kBailing};
constexpr std::array kOfKimiK2{kKimiK2Gguf};
constexpr std::array kOfMiniCpm5{kDigitThrees, kMiniCpm5Gguf};
constexpr std::array kOfUfakzeka{kUfakzeka};
constexpr std::array kOfBloom{kBloom};
constexpr std::array kOfViking{kBloom, kDigit};
constexpr std::array kOfDefault{kPunctuationDefault, kGpt2, kDigits, kThreeAsciiDigits};
constexpr std::array kOfFalcon{kPunctuationFalcon, kGpt2, kThreeAsciiDigits};

constexpr GgufPreTokenizer kGpt2Alone{kOfGpt2};
constexpr GgufPreTokenizer kDigitsThenGpt2{kOfDigitsThenGpt2};
constexpr GgufPreTokenizer kLlamaBpe{kOfLlamaBpe, true, true};
constexpr GgufPreTokenizer kGlm4{kOfLlamaBpe, true};
constexpr GgufPreTokenizer kLlamaBpeMerging{kOfLlamaBpe};
constexpr GgufPreTokenizer kQwen{kOfQwen};
constexpr GgufPreTokenizer kQwen35Alone{kOfQwen35};
constexpr GgufPreTokenizer kDeepseekLlm{kOfDeepseekLlm};
constexpr GgufPreTokenizer kDeepseekCoder{kOfDeepseekCoder};
constexpr GgufPreTokenizer kDeepseekV3{kOfDeepseekV3};
constexpr GgufPreTokenizer kTekkenAlone{kOfTekken, true, true};
constexpr GgufPreTokenizer kGpt4oAlone{kOfGpt4o};
constexpr GgufPreTokenizer kSeedCoderAlone{kOfSeedCoder};
constexpr GgufPreTokenizer kBailingAlone{kOfBailing};
constexpr GgufPreTokenizer kKimiK2Alone{kOfKimiK2};
constexpr GgufPreTokenizer kMiniCpm5{kOfMiniCpm5, true};
constexpr GgufPreTokenizer kUfakzekaAlone{kOfUfakzeka};
constexpr GgufPreTokenizer kBloomAlone{kOfBloom};
constexpr GgufPreTokenizer kViking{kOfViking};
constexpr GgufPreTokenizer kDefault{kOfDefault};
constexpr GgufPreTokenizer kFalcon{kOfFalcon};

struct Named {
  std::string_view name;
  const GgufPreTokenizer* value;
};
constexpr std::array kNames{Named{"default", &kDefault},
                            Named{"falcon", &kFalcon},
                            Named{"smollm", &kDigitsThenGpt2},
                            Named{"starcoder", &kDigitsThenGpt2},
                            Named{"refact", &kDigitsThenGpt2},
                            Named{"command-r", &kDigitsThenGpt2},
                            Named{"codeshell", &kDigitsThenGpt2},
                            Named{"exaone", &kDigitsThenGpt2},
                            Named{"minerva-7b", &kDigitsThenGpt2},
                            Named{"mellum2", &kDigitsThenGpt2},
                            Named{"gpt-2", &kGpt2Alone},
                            Named{"phi-2", &kGpt2Alone},
                            Named{"mpt", &kGpt2Alone},
                            Named{"olmo", &kGpt2Alone},
                            Named{"jais", &kGpt2Alone},
                            Named{"trillion", &kGpt2Alone},
                            Named{"granite-docling", &kGpt2Alone},
                            Named{"exaone4", &kGpt2Alone},
                            Named{"gigachat", &kGpt2Alone},
                            Named{"a.x-4.0", &kGpt2Alone},
                            Named{"mellum", &kGpt2Alone},
                            Named{"modern-bert", &kGpt2Alone},
                            Named{"roberta-bpe", &kGpt2Alone},
                            Named{"llama3", &kLlamaBpe},
                            Named{"llama-v3", &kLlamaBpe},
                            Named{"llama-bpe", &kLlamaBpe},
                            Named{"falcon3", &kLlamaBpe},
                            Named{"falcon-h1", &kLlamaBpe},
                            Named{"pixtral", &kLlamaBpe},
                            Named{"midm-2.0", &kLlamaBpe},
                            Named{"lfm2", &kLlamaBpe},
                            Named{"glm4", &kGlm4},
                            Named{"chatglm-bpe", &kLlamaBpeMerging},
                            Named{"dbrx", &kLlamaBpeMerging},
                            Named{"smaug-bpe", &kLlamaBpeMerging},
                            Named{"qwen2", &kQwen},
                            Named{"deepseek-r1-qwen", &kQwen},
                            Named{"kormo", &kQwen},
                            Named{"stablelm2", &kQwen},
                            Named{"megrez", &kQwen},
                            Named{"hunyuan", &kQwen},
                            Named{"solar-open", &kQwen},
                            Named{"grok-2", &kQwen},
                            Named{"deepseek-llm", &kDeepseekLlm},
                            Named{"deepseek-coder", &kDeepseekCoder},
                            Named{"deepseek-v3", &kDeepseekV3},
                            Named{"hunyuan-dense", &kDeepseekV3},
                            Named{"joyai-llm", &kDeepseekV3},
                            Named{"tekken", &kTekkenAlone},
                            Named{"gpt-4o", &kGpt4oAlone},
                            Named{"llama4", &kGpt4oAlone},
                            Named{"kanana2", &kGpt4oAlone},
                            Named{"minimax-m2", &kGpt4oAlone},
                            Named{"qwen35", &kQwen35Alone},
                            Named{"seed-coder", &kSeedCoderAlone},
                            Named{"bailingmoe", &kBailingAlone},
                            Named{"bailingmoe2", &kBailingAlone},
                            Named{"llada-moe", &kBailingAlone},
                            Named{"bloom", &kBloomAlone},
                            Named{"poro-chat", &kBloomAlone},
                            Named{"gpt3-finnish", &kBloomAlone},
                            Named{"viking", &kViking},
                            Named{"kimi-k2", &kKimiK2Alone},
                            Named{"minicpm5", &kMiniCpm5},
                            Named{"ufakzeka", &kUfakzekaAlone},
                            Named{"talkie", &kGpt4oAlone},
                            Named{"f2llmv2", &kQwen},
                            Named{"hy_v4", &kDeepseekV3},
                            Named{"jina-v5-nano", &kLlamaBpe}};

}  // namespace gguf_pre

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(gguf_pre::kNames, name, &gguf_pre::Named::name);
  return found == gguf_pre::kNames.end() ? nullptr : found->value;
}

}  // namespace kvs::inline tokenizer
