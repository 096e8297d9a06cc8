#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "io/tokenizer/split.h"

namespace kvs {
namespace {

// R"kvs(...)kvs" keeps each pattern as its own program writes it, so that a file's pattern can be compared as a string.

/// Llama 3 (cl100k with digits in threes), as its tokenizer.json has it and as llama.cpp does: without case folding
/// beyond ASCII, so that U+017F (long s) after an apostrophe differs.
constexpr std::string_view kLlama3 =
    R"kvs((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
constexpr std::string_view kLlama3Gguf =
    R"kvs((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// Qwen 2 and 2.5, 3.
constexpr std::string_view kQwen2 =
    R"kvs((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
constexpr std::string_view kQwen2Gguf =
    R"kvs((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// Mistral's Tekken (Nemo and later).
constexpr std::string_view kTekken =
    R"kvs([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// GPT-4o, Llama 4.
constexpr std::string_view kGpt4o =
    R"kvs([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// GPT-2's pattern without its last alternative, which changes nothing; llama.cpp and some files write it so.
constexpr std::string_view kGpt2Short =
    R"kvs('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))kvs";
constexpr std::string_view kDigitThrees = R"kvs(\p{N}{1,3})kvs";

}  // namespace

const std::string_view kGpt2Pattern =
    R"kvs('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)kvs";
const std::string_view kDigitPattern = R"kvs(\p{N})kvs";

bool is_known_pattern(std::string_view pattern) noexcept {
  static const std::array kKnown{kGpt2Pattern, kDigitPattern, kGpt2Short, kLlama3, kLlama3Gguf,
                                 kQwen2,       kQwen2Gguf,    kTekken,    kGpt4o,  kDigitThrees};
  return std::find(kKnown.begin(), kKnown.end(), pattern) != kKnown.end();
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) noexcept {
  // Source: llama.cpp src/llama-vocab.cpp, llama_vocab::impl::load and llm_tokenizer_bpe.
  static const GgufPreTokenizer kGpt2{{kGpt2Pattern}};
  static const GgufPreTokenizer kDigitsThenGpt2{{kDigitPattern, kGpt2Pattern}};
  static const GgufPreTokenizer kLlamaBpe{{kLlama3Gguf}, true};
  static const GgufPreTokenizer kLlamaBpeMerging{{kLlama3Gguf}, false};
  static const GgufPreTokenizer kQwen{{kQwen2Gguf}};
  static const GgufPreTokenizer kDefault{
      {R"kvs([\p{P}\$\+<=>\^~\|]+)kvs", kGpt2Pattern, R"kvs(\p{N}+)kvs", "[0-9][0-9][0-9]"}};
  static const GgufPreTokenizer kFalcon{{R"kvs([\p{P}\$\+<=>\^~\|`]+)kvs", kGpt2Pattern, "[0-9][0-9][0-9]"}};
  static const std::array<std::pair<std::string_view, const GgufPreTokenizer*>, 43> kTable{{
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
      {"gpt-2", &kGpt2},
      {"phi-2", &kGpt2},
      {"mpt", &kGpt2},
      {"olmo", &kGpt2},
      {"jais", &kGpt2},
      {"trillion", &kGpt2},
      {"granite-docling", &kGpt2},
      {"exaone4", &kGpt2},
      {"gigachat", &kGpt2},
      {"a.x-4.0", &kGpt2},
      {"mellum", &kGpt2},
      {"modern-bert", &kGpt2},
      {"roberta-bpe", &kGpt2},
      {"llama3", &kLlamaBpe},
      {"llama-v3", &kLlamaBpe},
      {"llama-bpe", &kLlamaBpe},
      {"falcon3", &kLlamaBpe},
      {"falcon-h1", &kLlamaBpe},
      {"pixtral", &kLlamaBpe},
      {"midm-2.0", &kLlamaBpe},
      {"lfm2", &kLlamaBpe},
      {"glm4", &kLlamaBpe},
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
  }};
  const auto found = std::find_if(kTable.begin(), kTable.end(), [&](const auto& row) { return row.first == name; });
  return found == kTable.end() ? nullptr : found->second;
}

}  // namespace kvs
