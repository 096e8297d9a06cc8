// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_json_writer.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "io/file.h"
#include "io/json.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/split.h"

namespace kvs::inline tokenizer {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

std::string text_of(const GgufFile& file, const std::string& key, std::string_view otherwise) {
  return std::string(file.has(key) ? file.get_string(key) : otherwise);
}

Json added_tokens(const GgufVocabulary& vocabulary) {
  Json list = Json::array();
  for (const AddedToken& token : vocabulary.added)
    list.push_back({{"id", token.id},
                    {"content", token.text},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", token.rstrip},
                    {"normalized", false},
                    {"special", !vocabulary.is_shown[static_cast<std::size_t>(token.id)]}});
  return list;
}

Json pre_tokenizer(const GgufPreTokenizer& pre) {
  Json steps = Json::array();
  for (const std::string_view pattern : pre.patterns)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

Json byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
}

bool flag(const GgufFile& file, std::string_view key, bool otherwise) {
  const std::string name = std::string(kPrefix) + std::string(key);
  return file.has(name) ? file.get_boolean(name) : otherwise;
}

/// Returns the step that puts the begin-of-sequence token before a text, if the file asks for it.
Json post_processor(const GgufVocabulary& vocabulary) {
  if (!vocabulary.adds_bos) return nullptr;
  const std::string& bos = vocabulary.texts[static_cast<std::size_t>(vocabulary.bos)];
  const auto special = [&](int type) { return Json{{"SpecialToken", {{"id", bos}, {"type_id", type}}}}; };
  const auto sequence = [](const char* name, int type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", {special(0), sequence("A", 0)}},
          {"pair", {special(0), sequence("A", 0), special(1), sequence("B", 1)}},
          {"special_tokens", {{bos, {{"id", bos}, {"ids", {vocabulary.bos}}, {"tokens", {bos}}}}}}};
}

Json bpe_model(const GgufVocabulary& vocabulary, Json merges) {
  Json::object_t ids;  // appended without a search: operator[] of an ordered object compares every member
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) ids.emplace_back(vocabulary.texts[id], id);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", Json(std::move(ids))},
          {"merges", std::move(merges)}};
}

/// The merges that produce tokens. llama.cpp merges any texts, `tokenizers` only tokens. A merge whose sides never
/// arise has no effect and is left out. `obstacle` receives a merge that would change ids.
class TokenMerges {
 public:
  explicit TokenMerges(const GgufVocabulary& vocabulary)
      : vocabulary_(vocabulary), merges_(vocabulary.strings(std::string(kPrefix) + "merges")) {
    for (bool grows = true; grows;) {
      grows = false;
      for (const std::string_view merge : merges_) {
        const auto [left, right] = sides(merge);
        if (arises(left) && arises(right)) grows = made_.insert(std::string(left) + std::string(right)).second || grows;
      }
    }
  }

  Json take(std::string& obstacle) const {
    Json kept = Json::array();
    for (const std::string_view merge : merges_) {
      const auto [left, right] = sides(merge);
      const std::string made = std::string(left) + std::string(right);
      if (is_token(left) && is_token(right) && is_token(made)) {
        kept.push_back(std::string(merge));
      } else if (obstacle.empty() && arises(left) && arises(right)) {
        obstacle = "found the merge " + GgufVocabulary::shown(merge) +
                   " of texts that are no tokens, which a tokenizer.json cannot state";
      }
    }
    return kept;
  }

 private:
  static std::pair<std::string_view, std::string_view> sides(std::string_view merge) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) return {};
    return {merge.substr(0, space), merge.substr(space + 1)};
  }
  bool is_token(std::string_view text) const { return vocabulary_.tokens.find(text) >= 0; }
  /// Returns true if `text` can occur: as the character of one byte, or as the result of a merge.
  bool arises(std::string_view text) const {
    const auto bytes = bytes_of_token(text);
    return (bytes && bytes->size() == 1) || made_.contains(text);
  }

  const GgufVocabulary& vocabulary_;
  const std::vector<std::string_view>& merges_;
  std::set<std::string, std::less<>> made_;
};

Json byte_level_tokenizer(const GgufVocabulary& vocabulary, const GgufPreTokenizer& pre, std::string& obstacle) {
  Json post = post_processor(vocabulary);
  Json model = bpe_model(vocabulary, TokenMerges(vocabulary).take(obstacle));
  model["ignore_merges"] = pre.ignore_merges;
  return {{"normalizer", nullptr},
          {"pre_tokenizer", pre_tokenizer(pre)},
          {"post_processor", post.is_null() ? byte_level() : std::move(post)},
          {"decoder", byte_level()},
          {"model", std::move(model)}};
}

/// Returns every way to combine two tokens to a third; the third token with the highest score comes first.
Json scored_merges(const GgufVocabulary& vocabulary) {
  const std::vector<float> scores = read_gguf_scores(vocabulary);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  Json merges = Json::array();
  for (const std::size_t id : order) {
    const std::string& text = vocabulary.texts[id];
    if (vocabulary.is_special[id] || byte_of_token_name(text)) continue;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const std::string left = text.substr(0, cut), right = text.substr(cut);
      if (vocabulary.tokens.find(left) >= 0 && vocabulary.tokens.find(right) >= 0) merges.push_back({left, right});
    }
  }
  return merges;
}

/// Returns SentencePiece's BPE: spaces become markers, a text gets one before it, unknown characters become bytes.
Json marked_tokenizer(const GgufVocabulary& vocabulary) {
  const bool prefix = flag(vocabulary.file, "add_space_prefix", true);
  const Json replace{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMarker}};
  Json normalizers = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMarker}});
  normalizers.push_back(replace);
  Json decoders = Json::array();
  decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpaceMarker}}}, {"content", " "}});
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  Json model = bpe_model(vocabulary, scored_merges(vocabulary));
  model["byte_fallback"] = true;
  return {{"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", post_processor(vocabulary)},
          {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
          {"model", std::move(model)}};
}

/// Returns one text, or a list if there are several templates with names; null if there is none.
Json chat_templates(const GgufFile& file) {
  constexpr std::string_view kDefault = "tokenizer.chat_template", kNames = "tokenizer.chat_templates";
  const std::string one = text_of(file, std::string(kDefault), "");
  Json list = Json::array();
  if (!one.empty()) list.push_back({{"name", "default"}, {"template", one}});
  if (file.has(kNames))
    if (const auto* names = std::get_if<std::vector<std::string_view>>(&file.get_array(kNames)))
      for (const std::string_view name : *names)
        if (const std::string key = std::string(kDefault) + '.' + std::string(name); file.has(key))
          list.push_back({{"name", name}, {"template", file.get_string(key)}});
  if (list.empty()) return nullptr;
  return list.size() == 1 && !one.empty() ? Json(one) : list;
}

Json tokenizer_config(const GgufVocabulary& vocabulary) {
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [name, key] :
       {std::pair("bos_token", "bos_token_id"), std::pair("eos_token", "eos_token_id"),
        std::pair("unk_token", "unknown_token_id"), std::pair("pad_token", "padding_token_id")}) {
    if (const auto id = stated_gguf_token(vocabulary.file, key, vocabulary.texts.size()))
      config[name] = vocabulary.texts[static_cast<std::size_t>(*id)];
  }
  if (Json chat = chat_templates(vocabulary.file); !chat.is_null()) config["chat_template"] = std::move(chat);
  return config;
}

}  // namespace

std::string write_tokenizer_json(const GgufFile& file, const std::filesystem::path& folder) {
  const std::string kind = text_of(file, std::string(kPrefix) + "model", "");
  Json tokenizer{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  if (kind != "gpt2" && kind != "llama")
    return "found tokenizer " + GgufVocabulary::shown(kind) + ", expected gpt2 or llama";
  const GgufVocabulary vocabulary = read_gguf_vocabulary(file);
  tokenizer["added_tokens"] = added_tokens(vocabulary);
  if (kind == "gpt2") {
    const std::string name = text_of(file, std::string(kPrefix) + "pre", "default");
    const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(name);
    if (pre == nullptr) return "found pre-tokenizer " + GgufVocabulary::shown(name) + ", which is not known";
    std::string obstacle;
    tokenizer.update(byte_level_tokenizer(vocabulary, *pre, obstacle));
    if (!obstacle.empty()) return obstacle;
  } else {
    tokenizer.update(marked_tokenizer(vocabulary));
  }
  write_file_atomically(folder / "tokenizer.json", dump_json(tokenizer) + "\n", false);
  write_file_atomically(folder / "tokenizer_config.json", dump_json(tokenizer_config(vocabulary)) + "\n", false);
  return {};
}

}  // namespace kvs::inline tokenizer
