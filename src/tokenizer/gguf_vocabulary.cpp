// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <utility>
#include <variant>

#include "core/utf8.h"
#include "tokenizer/split.h"

namespace kvs::inline tokenizer {
namespace {

// Tokens that llama.cpp treats as special because of their text, whatever type the file states, because converters got
// the type wrong (llama-vocab.cpp, "control-looking token"): ends of a turn or of generation, then fill-in-the-middle.
constexpr std::array<std::string_view, 59> kSpecialByText{"<|eot_id|>",
                                                          "<|im_end|>",
                                                          "<|end|>",
                                                          "<|return|>",
                                                          "<|call|>",
                                                          "<|flush|>",
                                                          "<|calls|>",
                                                          "<end_of_turn>",
                                                          "<|endoftext|>",
                                                          "</s>",
                                                          "<|eom_id|>",
                                                          "<EOT>",
                                                          "_<EOT>",
                                                          "[EOT]",
                                                          "[EOS]",
                                                          "<|end_of_text|>",
                                                          "<end_of_utterance>",
                                                          "<eos>",
                                                          "<turn|>",
                                                          "<|tool_response>",
                                                          "<｜end▁of▁sentence｜>",
                                                          "[e~[",
                                                          "<|channel|>",
                                                          "<|message|>",
                                                          "<|start|>",
                                                          "<|constrain|>",
                                                          "<|fim_prefix|>",
                                                          "<fim-prefix>",
                                                          "<fim_prefix>",
                                                          "<｜fim▁begin｜>",
                                                          "<PRE>",
                                                          "▁<PRE>",
                                                          "<|code_prefix|>",
                                                          "<|prefix|>",
                                                          "<|fim_suffix|>",
                                                          "<fim-suffix>",
                                                          "<fim_suffix>",
                                                          "<｜fim▁hole｜>",
                                                          "<SUF>",
                                                          "▁<SUF>",
                                                          "<|code_suffix|>",
                                                          "<|suffix|>",
                                                          "<|fim_middle|>",
                                                          "<fim-middle>",
                                                          "<fim_middle>",
                                                          "<｜fim▁end｜>",
                                                          "<MID>",
                                                          "▁<MID>",
                                                          "<|code_middle|>",
                                                          "<|middle|>",
                                                          "<|fim_pad|>",
                                                          "<fim-pad>",
                                                          "<fim_pad>",
                                                          "<PAD>",
                                                          "[PAD]",
                                                          "<|fim_repo|>",
                                                          "<|repo_name|>",
                                                          "<reponame>",
                                                          "<|file_sep|>"};

bool is_control(std::string_view text, std::int64_t type) {
  return type == kGgufControl || type == kGgufUnknown ||
         std::find(kSpecialByText.begin(), kSpecialByText.end(), text) != kSpecialByText.end();
}

std::vector<std::int64_t> token_types(const GgufVocabulary& vocabulary, std::size_t tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (!vocabulary.file.has(kKey)) return std::vector<std::int64_t>(tokens, kGgufNormal);
  const auto* types = std::get_if<std::vector<std::int64_t>>(&vocabulary.file.get_array(kKey));
  if (types == nullptr) vocabulary.fail(ErrorCode::kInput, kKey, "expected an array of integers");
  if (types->size() != tokens) {
    vocabulary.fail(
        ErrorCode::kInput, kKey,
        "found " + std::to_string(types->size()) + " types, expected " + std::to_string(tokens) + ", one per token");
  }
  return *types;
}

/// For Phi-3, recognised by the model's name, llama.cpp lets special tokens take the white space after them
/// (llama-vocab.cpp, "set attributes by model/tokenizer/architecture name").
bool strips_after_special(const GgufFile& file) {
  constexpr std::string_view kKey = "general.name";
  if (!file.has(kKey)) return false;
  std::string name(file.get_string(kKey));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

std::string special_key(const std::string& name) { return "tokenizer.ggml." + name; }

bool has_scores(const GgufFile& file) { return file.get_string("tokenizer.ggml.model") == "llama"; }

/// If a SentencePiece vocabulary states no BOS, llama.cpp uses token 1 (llama_vocab::impl::load). Its default for other
/// vocabularies is Falcon's token 11, which is not BOS in any other vocabulary; they have no BOS here.
std::int32_t bos_of(const GgufFile& file, std::size_t tokens) {
  return stated_gguf_token(file, "bos_token_id", tokens).value_or(has_scores(file) && tokens > 1 ? 1 : -1);
}

/// Returns a note if the stated BOS is not a token of the vocabulary; otherwise empty.
std::string note_on_bos(const GgufVocabulary& vocabulary) {
  const std::string name = "bos_token_id", key = special_key(name);
  const std::size_t tokens = vocabulary.texts.size();
  if (!vocabulary.file.has(key) || stated_gguf_token(vocabulary.file, name, tokens)) return "";
  return vocabulary.where + ": " + key + ": found " + std::to_string(vocabulary.file.get_unsigned(key, kAny)) +
         ", expected an id below " + std::to_string(tokens) + ": as in llama.cpp " +
         (vocabulary.bos < 0 ? "there is no begin-of-sequence token"
                             : "token " + std::to_string(vocabulary.bos) + " is the begin-of-sequence token");
}

/// Uses llama.cpp's defaults if the file does not state it.
bool asks_for_bos(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.add_bos_token", kPre = "tokenizer.ggml.pre";
  if (file.has(kKey)) return file.get_boolean(kKey);
  if (has_scores(file)) return true;
  const GgufPreTokenizer* pre = file.has(kPre) ? find_gguf_pre_tokenizer(file.get_string(kPre)) : nullptr;
  return pre != nullptr && pre->adds_bos;
}

bool never_strips(std::string_view text) { return text == "<unk>" || text == "<s>" || text == "<|endoftext|>"; }

}  // namespace

std::optional<std::int32_t> stated_gguf_token(const GgufFile& file, const std::string& name, std::size_t tokens) {
  const std::string key = special_key(name);
  if (!file.has(key)) return std::nullopt;
  const std::uint64_t id = file.get_unsigned(key, kAny);
  return id < tokens ? std::optional(static_cast<std::int32_t>(id)) : std::nullopt;
}

void GgufVocabulary::fail(ErrorCode code, std::string_view key, const std::string& problem) const {
  throw Error(code, where + ": " + std::string(key), problem);
}

std::string GgufVocabulary::shown(std::string_view text) { return '"' + printable(text, 100) + '"'; }

const std::vector<std::string_view>& GgufVocabulary::strings(std::string_view key) const {
  const auto* values = std::get_if<std::vector<std::string_view>>(&file.get_array(key));
  if (values == nullptr) fail(ErrorCode::kInput, key, "found an array of numbers, expected one of strings");
  if (values->size() > kMaxVocabulary)
    fail(ErrorCode::kInput, key, "found " + std::to_string(values->size()) + " entries");
  return *values;
}

std::string GgufVocabulary::describe(std::size_t id) const {
  return "token " + std::to_string(id) + ' ' + shown(texts[id]);
}

void GgufVocabulary::give_to(TokenizerParts& parts) && {
  parts.added_rule = TokenizerParts::AddedRule::kLongestFirst;
  parts.added = AddedTokens(std::move(added));
  parts.tokens = std::move(tokens);
  parts.bos = bos;
  parts.adds_bos = adds_bos;
  parts.notes = std::move(notes);
}

GgufVocabulary read_gguf_vocabulary(const GgufFile& file) {
  GgufVocabulary vocabulary(file);
  const std::vector<std::string_view>& tokens = vocabulary.strings(kGgufTokens);
  if (tokens.empty()) vocabulary.fail(ErrorCode::kInput, kGgufTokens, "found no token");
  const std::vector<std::int64_t> types = token_types(vocabulary, tokens.size());
  const bool strips = strips_after_special(file);
  vocabulary.tokens.resize(tokens.size());
  vocabulary.tokens.known.assign(tokens.size(), true);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    // llama.cpp gives empty tokens this name, which keeps texts unique.
    vocabulary.texts.push_back(tokens[id].empty() ? "[EMPTY_" + std::to_string(id) + "]" : std::string(tokens[id]));
    const std::string& text = vocabulary.texts.back();
    if (!vocabulary.tokens.ids_by_text.emplace(text, static_cast<std::int32_t>(id)).second) {
      vocabulary.fail(ErrorCode::kInput, kGgufTokens, vocabulary.describe(id) + " has the text of an earlier token");
    }
    vocabulary.is_shown.push_back(types[id] == kGgufUserDefined && !is_control(text, types[id]));
    vocabulary.is_special.push_back(vocabulary.is_shown.back() || is_control(text, types[id]));
    if (!vocabulary.is_special.back()) continue;
    if (find_invalid_utf8(text) != text.npos)  // as part of a text it would cut a character
      vocabulary.fail(ErrorCode::kInput, kGgufTokens, vocabulary.describe(id) + " is special and not UTF-8");
    vocabulary.tokens.bytes[id] = text;
    vocabulary.added.push_back({.text = text,
                                .id = static_cast<std::int32_t>(id),
                                .rstrip = strips && !never_strips(text),
                                .is_control = !vocabulary.is_shown.back()});
  }
  vocabulary.bos = bos_of(file, tokens.size());
  vocabulary.adds_bos = vocabulary.bos >= 0 && asks_for_bos(file);
  if (std::string note = note_on_bos(vocabulary); !note.empty()) vocabulary.notes.push_back(std::move(note));
  return vocabulary;
}

}  // namespace kvs::inline tokenizer
