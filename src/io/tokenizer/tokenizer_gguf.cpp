#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "io/gguf.h"
#include "io/tokenizer/bpe_tokenizer.h"
#include "io/tokenizer/byte_alphabet.h"

namespace kvs {
namespace {

// enum llama_token_type (llama.h)
constexpr std::int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4;

// Tokens that llama.cpp takes for special by their text, whatever type the file gives them, because converters got it
// wrong (llama-vocab.cpp, "control-looking token"): ends of a turn or of generation, then those of fill-in-the-middle.
constexpr std::array<std::string_view, 56> kSpecialByText{"<|eot_id|>",
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
                                                          "<|code_prefix|>",
                                                          "<|prefix|>",
                                                          "<|fim_suffix|>",
                                                          "<fim-suffix>",
                                                          "<fim_suffix>",
                                                          "<｜fim▁hole｜>",
                                                          "<SUF>",
                                                          "<|code_suffix|>",
                                                          "<|suffix|>",
                                                          "<|fim_middle|>",
                                                          "<fim-middle>",
                                                          "<fim_middle>",
                                                          "<｜fim▁end｜>",
                                                          "<MID>",
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

class Builder {
 public:
  explicit Builder(const GgufFile& file) : file_(file), where_(file.path().string()) {}

  std::unique_ptr<Tokenizer> build() {
    const std::string_view model = file_.get_string("tokenizer.ggml.model");
    if (model != "gpt2") {
      fail(ErrorCode::kUnsupported, "tokenizer.ggml.model", "found " + shown(model) + ", expected \"gpt2\"");
    }
    const GgufPreTokenizer& pre = find_pre();
    for (const std::string_view pattern : pre.patterns) parts_.steps.push_back(make_regex_split(Regex(pattern)));
    parts_.added_rule = BpeTokenizerParts::AddedRule::kLongestFirst;
    read_tokens(pre.ignore_merges);
    read_merges();
    read_bos();
    return std::make_unique<BpeTokenizer>(std::move(parts_));
  }

 private:
  [[noreturn]] void fail(ErrorCode code, std::string_view key, const std::string& problem) const {
    throw Error(code, where_ + ": " + std::string(key), problem);
  }
  static std::string shown(std::string_view text) { return '"' + printable(text, 100) + '"'; }

  const GgufPreTokenizer& find_pre() const {
    constexpr std::string_view kKey = "tokenizer.ggml.pre";
    const std::string_view name = file_.has(kKey) ? file_.get_string(kKey) : "default";
    const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(name);
    if (pre == nullptr) fail(ErrorCode::kUnsupported, kKey, "pre-tokenizer " + shown(name) + " is not known");
    return *pre;
  }

  const std::vector<std::string_view>& strings(std::string_view key) const {
    const auto* values = std::get_if<std::vector<std::string_view>>(&file_.get_array(key));
    if (values == nullptr) fail(ErrorCode::kInput, key, "found an array of numbers, expected one of strings");
    return *values;
  }

  std::vector<std::int64_t> token_types(std::size_t tokens) const {
    constexpr std::string_view kKey = "tokenizer.ggml.token_type";
    if (!file_.has(kKey)) return std::vector<std::int64_t>(tokens, kNormal);
    const auto* types = std::get_if<std::vector<std::int64_t>>(&file_.get_array(kKey));
    if (types == nullptr) fail(ErrorCode::kInput, kKey, "expected an array of integers");
    if (types->size() != tokens) {
      fail(ErrorCode::kInput, kKey,
           "found " + std::to_string(types->size()) + " types, expected " + std::to_string(tokens) + ", one per token");
    }
    return *types;
  }

  static bool is_special(std::string_view text, std::int64_t type) {
    return type == kControl || type == kUserDefined || type == kUnknown ||
           std::find(kSpecialByText.begin(), kSpecialByText.end(), text) != kSpecialByText.end();
  }

  void read_tokens(bool ignore_merges) {
    constexpr std::string_view kKey = "tokenizer.ggml.tokens";
    const std::vector<std::string_view>& tokens = strings(kKey);
    if (tokens.empty()) fail(ErrorCode::kInput, kKey, "found no token");
    if (tokens.size() > kMaxVocabulary)
      fail(ErrorCode::kInput, kKey, "found " + std::to_string(tokens.size()) + " tokens");
    const std::vector<std::int64_t> types = token_types(tokens.size());
    parts_.bpe = Bpe(tokens.size(), ignore_merges);
    parts_.token_bytes.resize(tokens.size());
    parts_.known_ids.assign(tokens.size(), true);
    std::vector<AddedToken> added;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      // llama.cpp names an empty token so, which keeps texts unique.
      const std::string text = tokens[id].empty() ? "[EMPTY_" + std::to_string(id) + "]" : std::string(tokens[id]);
      const std::string what = "token " + std::to_string(id) + " " + shown(text);
      if (!parts_.ids_by_text.emplace(text, static_cast<std::int32_t>(id)).second) {
        fail(ErrorCode::kInput, kKey, what + " has the text of an earlier token");
      }
      const bool special = is_special(text, types[id]);
      std::optional<std::string> bytes = bytes_of_token(text);
      if (!bytes && !special) fail(ErrorCode::kInput, kKey, what + " has a character outside the byte alphabet");
      parts_.token_bytes[id] = special ? text : *bytes;
      if (special) added.push_back({.text = text, .id = static_cast<std::int32_t>(id)});
      if (bytes) parts_.bpe.add_token(std::move(*bytes), static_cast<std::uint32_t>(id));
    }
    parts_.added = AddedTokens(std::move(added));
  }

  void read_merges() {
    constexpr std::string_view kKey = "tokenizer.ggml.merges";
    const std::vector<std::string_view>& merges = strings(kKey);
    if (merges.size() > kMaxVocabulary)
      fail(ErrorCode::kInput, kKey, "found " + std::to_string(merges.size()) + " merges");
    // llama.cpp merges over texts, tokens or not; a byte that is no token keeps its place until the merges are done.
    for (int byte = 0; byte < 256; ++byte) parts_.bpe.find_or_make(std::string(1, static_cast<char>(byte)));
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::string_view merge = merges[rank];
      const std::size_t space = merge.find(' ', 1);
      const auto left = bytes_of_token(merge.substr(0, space));
      const auto right = space == std::string_view::npos ? std::nullopt : bytes_of_token(merge.substr(space + 1));
      if (!left || !right || left->empty() || right->empty()) {
        fail(ErrorCode::kInput, kKey,
             "merge " + std::to_string(rank) + " is " + shown(merge) + ", expected two tokens with one space between");
      }
      const std::uint32_t a = parts_.bpe.find_or_make(*left), b = parts_.bpe.find_or_make(*right);
      parts_.bpe.add_merge(a, b, static_cast<std::uint32_t>(rank), parts_.bpe.find_or_make(*left + *right));
    }
  }

  void read_bos() {
    constexpr std::string_view kKey = "tokenizer.ggml.bos_token_id";
    if (file_.has(kKey)) {
      parts_.bos = static_cast<std::int32_t>(file_.get_unsigned(kKey, parts_.token_bytes.size() - 1));
    }
  }

  const GgufFile& file_;
  std::string where_;
  BpeTokenizerParts parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_gguf(const GgufFile& file) { return Builder(file).build(); }

}  // namespace kvs
