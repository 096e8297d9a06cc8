#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "io/file.h"
#include "io/json.h"
#include "io/tokenizer/bpe_tokenizer.h"
#include "io/tokenizer/byte_alphabet.h"

namespace kvs {
namespace {

constexpr std::size_t kFileLimit = 256UL << 20;

std::string shown(std::string_view text) { return '"' + printable(text, 100) + '"'; }

class Builder {
 public:
  Builder(const Json& document, std::string_view where) : where_(where), root_(document, where_) {}

  std::unique_ptr<Tokenizer> build(std::string_view bos) {
    if (root_.has("version") && root_.at("version").string() != "1.0") {
      unsupported(root_.at("version"), "version", root_.at("version").string());
    }
    check_post_processor();
    if (root_.has("normalizer")) read_normalizer(root_.at("normalizer"));
    if (root_.has("pre_tokenizer")) read_pre_tokenizer(root_.at("pre_tokenizer"), true);
    if (!has_byte_level_) {
      throw Error(ErrorCode::kUnsupported, where_ + ": /pre_tokenizer", "found no ByteLevel, which this version needs");
    }
    read_model(root_.at("model"));
    read_bos(bos);
    return std::make_unique<BpeTokenizer>(std::move(parts_));
  }

 private:
  [[noreturn]] void unsupported(const JsonCursor& at, std::string_view what, std::string_view name) const {
    throw Error(ErrorCode::kUnsupported, where_ + ": " + at.pointer(),
                std::string(what) + ' ' + shown(name) + " is not supported");
  }
  [[noreturn]] void malformed(const JsonCursor& at, const std::string& problem) const {
    throw Error(ErrorCode::kInput, where_ + ": " + at.pointer(), problem);
  }
  static bool is_true(const JsonCursor& object, std::string_view key) {
    return object.has(key) && object.at(key).boolean();
  }

  // --- the steps around the model ---

  void check_post_processor() const {
    if (!root_.has("post_processor")) return;
    check_post_processor(root_.at("post_processor"));
  }

  /// All of these only put special tokens around a text, which is not asked for here.
  void check_post_processor(const JsonCursor& processor) const {
    const std::string& type = processor.at("type").string();
    if (type == "Sequence") {
      const JsonCursor list = processor.at("processors");
      for (std::size_t i = 0; i < list.array_size(); ++i) check_post_processor(list.at(i));
    } else if (type != "ByteLevel" && type != "TemplateProcessing" && type != "RobertaProcessing" &&
               type != "BertProcessing") {
      unsupported(processor.at("type"), "post-processor", type);
    }
  }

  void read_normalizer(const JsonCursor& normalizer) {
    const std::string& type = normalizer.at("type").string();
    if (type == "NFC") {
      parts_.nfc = true;
    } else if (type == "Sequence") {
      const JsonCursor list = normalizer.at("normalizers");
      for (std::size_t i = 0; i < list.array_size(); ++i) read_normalizer(list.at(i));
    } else {
      unsupported(normalizer.at("type"), "normalizer", type);
    }
  }

  void read_pre_tokenizer(const JsonCursor& step, bool is_last) {
    const std::string& type = step.at("type").string();
    if (type == "Sequence") {
      const JsonCursor list = step.at("pretokenizers");
      const std::size_t size = list.array_size();
      for (std::size_t i = 0; i < size; ++i) read_pre_tokenizer(list.at(i), is_last && i + 1 == size);
    } else if (type == "ByteLevel") {
      // After it the text is spelt in stand-ins for bytes, which later steps would have to see.
      if (!is_last) unsupported(step.at("type"), "a pre-tokenizer after", type);
      has_byte_level_ = true;
      if (step.at("add_prefix_space").boolean()) parts_.steps.push_back(make_prefix_space());
      if (!step.has("use_regex") || step.at("use_regex").boolean()) {
        parts_.steps.push_back(make_regex_split(Regex(kGpt2Pattern)));
      }
    } else if (type == "Digits") {
      const bool single = is_true(step, "individual_digits");
      parts_.steps.push_back(make_regex_split(Regex(single ? kDigitPattern : R"(\p{N}+)")));
    } else if (type == "Split") {
      read_split(step);
    } else {
      unsupported(step.at("type"), "pre-tokenizer", type);
    }
  }

  void read_split(const JsonCursor& step) {
    static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors{{
        {"Removed", SplitBehavior::kRemoved},
        {"Isolated", SplitBehavior::kIsolated},
        {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
        {"MergedWithNext", SplitBehavior::kMergedWithNext},
        {"Contiguous", SplitBehavior::kContiguous},
    }};
    const std::string& name = step.at("behavior").string();
    std::optional<SplitBehavior> behavior;
    for (const auto& [known, value] : kBehaviors) {
      if (known == name) behavior = value;
    }
    if (!behavior) unsupported(step.at("behavior"), "split behavior", name);
    const JsonCursor pattern = step.at("pattern");
    const bool invert = is_true(step, "invert");
    if (pattern.has("String")) {
      const std::string& text = pattern.at("String").string();
      if (text.empty()) pattern.at("String").fail("a text that is not empty");
      parts_.steps.push_back(make_regex_split(Regex(text, true), *behavior, invert));
      return;
    }
    const std::string& regex = pattern.at("Regex").string();
    if (!is_known_pattern(regex)) unsupported(pattern.at("Regex"), "split pattern", regex);
    parts_.steps.push_back(make_regex_split(Regex(regex), *behavior, invert));
  }

  // --- the model ---

  void read_model(const JsonCursor& model) {
    // Files of before 2021 name no type.
    if (model.has("type") && model.at("type").string() != "BPE") {
      unsupported(model.at("type"), "model", model.at("type").string());
    }
    if (model.has("dropout") && model.at("dropout").real() != 0) unsupported(model, "option", "dropout");
    if (is_true(model, "byte_fallback")) unsupported(model, "option", "byte_fallback");
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (model.has(key) && !model.at(key).string().empty()) unsupported(model, "option", key);
    }
    const JsonCursor vocabulary = model.at("vocab");
    if (!vocabulary.value().is_object()) vocabulary.fail("an object of tokens and ids");
    read_sizes(vocabulary);
    parts_.bpe = Bpe(parts_.token_bytes.size(), is_true(model, "ignore_merges"));
    read_vocabulary(vocabulary);
    read_added_tokens();
    fill_bpe(vocabulary);
    check_unknown_token(model);
    read_merges(model.at("merges"));
  }

  static std::uint64_t id_at(const JsonCursor& cursor) { return cursor.unsigned_integer(kMaxVocabulary - 1); }

  /// Ids are known to be below kMaxVocabulary before anything is sized by them.
  void read_sizes(const JsonCursor& vocabulary) {
    if (vocabulary.value().empty()) malformed(vocabulary, "found no token");
    std::uint64_t size = 0;
    for (const auto& [text, id] : vocabulary.value().items()) {
      size = std::max(size, id_of_token(vocabulary, text, id) + 1);
    }
    if (root_.has("added_tokens")) {
      const JsonCursor list = root_.at("added_tokens");
      for (std::size_t i = 0; i < list.array_size(); ++i) size = std::max(size, id_at(list.at(i).at("id")) + 1);
    }
    parts_.token_bytes.resize(size);
    parts_.known_ids.assign(size, false);
  }

  std::uint64_t id_of_token(const JsonCursor& vocabulary, const std::string& text, const Json& id) const {
    if (!id.is_number_integer() || id < 0 || id >= kMaxVocabulary) {
      malformed(vocabulary, "token " + shown(text) + " has id " +
                                printable(id.dump(-1, ' ', false, Json::error_handler_t::replace), 40) +
                                ", expected an integer from 0 to " + std::to_string(kMaxVocabulary - 1));
    }
    return id.get<std::uint64_t>();
  }

  void claim(const JsonCursor& at, const std::string& text, std::uint64_t id) {
    if (parts_.known_ids[id]) {
      malformed(at, "token " + shown(text) + " has id " + std::to_string(id) + ", which an earlier token has");
    }
    parts_.known_ids[id] = true;
    parts_.ids_by_text.emplace(text, static_cast<std::int32_t>(id));
  }

  void read_vocabulary(const JsonCursor& vocabulary) {
    for (const auto& [text, id] : vocabulary.value().items()) {
      claim(vocabulary, text, id_of_token(vocabulary, text, id));
    }
  }

  void read_added_tokens() {
    if (!root_.has("added_tokens")) return;
    const JsonCursor list = root_.at("added_tokens");
    std::vector<AddedToken> plain, normalized;
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonCursor entry = list.at(i);
      const std::string& text = entry.at("content").string();
      const std::uint64_t id = id_at(entry.at("id"));
      if (text.empty()) continue;  // as `tokenizers`: it can match nothing
      const auto known = parts_.ids_by_text.find(text);
      if (known == parts_.ids_by_text.end()) {
        claim(entry, text, id);
      } else if (static_cast<std::uint64_t>(known->second) != id) {
        malformed(entry, "token " + shown(text) + " has id " + std::to_string(id) + ", elsewhere it has " +
                             std::to_string(known->second));
      } else if (is_added(id)) {
        malformed(entry, "token " + shown(text) + " with id " + std::to_string(id) + " is added twice");
      }
      parts_.token_bytes[id] = text;
      AddedToken token{.text = text,
                       .id = static_cast<std::int32_t>(id),
                       .single_word = is_true(entry, "single_word"),
                       .lstrip = is_true(entry, "lstrip"),
                       .rstrip = is_true(entry, "rstrip")};
      (is_true(entry, "normalized") ? normalized : plain).push_back(std::move(token));
    }
    if (parts_.nfc) {
      for (AddedToken& token : normalized) token.text = to_nfc(token.text);
    }
    parts_.added = AddedTokens(std::move(plain));
    parts_.added_normalized = AddedTokens(std::move(normalized));
  }

  bool is_added(std::uint64_t id) const { return !parts_.token_bytes[id].empty(); }

  void fill_bpe(const JsonCursor& vocabulary) {
    for (const auto& [text, value] : vocabulary.value().items()) {
      const auto id = value.get<std::uint64_t>();
      std::optional<std::string> bytes = bytes_of_token(text);
      if (!bytes) {
        if (is_added(id)) continue;  // is only ever found as a whole
        malformed(vocabulary, "token " + shown(text) + " with id " + std::to_string(id) +
                                  " has a character outside the byte alphabet");
      }
      if (!is_added(id)) parts_.token_bytes[id] = *bytes;
      parts_.bpe.add_token(std::move(*bytes), static_cast<std::uint32_t>(id));
    }
  }

  /// With a token for each of the 256 bytes no text is unknown, and an unknown token never used.
  void check_unknown_token(const JsonCursor& model) const {
    if (!model.has("unk_token")) return;
    for (int byte = 0; byte < 256; ++byte) {
      if (parts_.bpe.find(std::string(1, static_cast<char>(byte))) == Bpe::kNone) {
        unsupported(model.at("unk_token"), "with a vocabulary that lacks bytes, the unknown token",
                    model.at("unk_token").string());
      }
    }
  }

  void read_merges(const JsonCursor& merges) {
    const std::size_t count = merges.array_size();
    for (std::size_t rank = 0; rank < count; ++rank) {
      const JsonCursor merge = merges.at(rank);
      const auto [left, right] = merge_parts(merge);
      const std::uint32_t a = merge_symbol(merge, left), b = merge_symbol(merge, right);
      const std::uint32_t merged = merge_symbol(merge, left + right);
      parts_.bpe.set_merge(a, b, static_cast<std::uint32_t>(rank), merged);
    }
  }

  /// "a b" or ["a", "b"].
  std::pair<std::string, std::string> merge_parts(const JsonCursor& merge) const {
    if (merge.value().is_array()) {
      if (merge.array_size() != 2) merge.fail("two tokens");
      return {merge.at(0).string(), merge.at(1).string()};
    }
    const std::string& text = merge.string();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      merge.fail("two tokens with one space between");
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }

  std::uint32_t merge_symbol(const JsonCursor& merge, const std::string& text) const {
    const auto bytes = bytes_of_token(text);
    const std::uint32_t symbol = bytes && !bytes->empty() ? parts_.bpe.find(*bytes) : Bpe::kNone;
    if (symbol == Bpe::kNone) malformed(merge, "token " + shown(text) + " of the merge is not in the vocabulary");
    return symbol;
  }

  void read_bos(std::string_view bos) {
    if (bos.empty()) return;
    const auto found = parts_.ids_by_text.find(bos);
    if (found == parts_.ids_by_text.end()) {
      throw Error(ErrorCode::kInput, where_,
                  "the bos_token " + shown(bos) + " of tokenizer_config.json is not in the vocabulary");
    }
    parts_.bos = found->second;
  }

  std::string where_;
  JsonCursor root_;
  BpeTokenizerParts parts_;
  bool has_byte_level_ = false;
};

/// The `bos_token` of the tokenizer_config.json beside `path`, or "": tokenizer.json itself names none.
std::string bos_beside(const std::filesystem::path& path) {
  constexpr std::size_t kConfigLimit = 16UL << 20;
  const std::filesystem::path config = path.parent_path() / "tokenizer_config.json";
  std::error_code error;
  if (!std::filesystem::exists(config, error)) return {};
  const Json document = parse_json(read_text_file(config, kConfigLimit), config.string(), {.bytes = kConfigLimit});
  const JsonCursor root(document, config.string());
  if (!root.has("bos_token")) return {};
  const JsonCursor bos = root.at("bos_token");
  return bos.value().is_object() ? bos.at("content").string() : bos.string();
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view bytes, std::string_view where, std::string_view bos) {
  const Json document = parse_json(bytes, where, {.bytes = kFileLimit});
  return Builder(document, where).build(bos);
}

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path) {
  return parse_tokenizer_json(read_text_file(path, kFileLimit), path.string(), bos_beside(path));
}

}  // namespace kvs
