// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/gguf_tokenizer_writer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "io/file.h"
#include "io/python_json.h"
#include "tokenizer/auto_tokenizer.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/chat_templates.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/split.h"
#include "tokenizer/split_patterns.h"

namespace kvs::inline tokenizer {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

/// Returns the split patterns of one pre-tokenizer, in order; nullopt for a kind without patterns.
std::optional<std::vector<std::string>> patterns_of(const Json& step) {
  const std::string type = step.value("type", "");
  std::vector<std::string> patterns;
  if (type == "Sequence") {
    for (const Json& part : step.at("pretokenizers")) {
      const auto more = patterns_of(part);
      if (!more) return std::nullopt;
      patterns.insert(patterns.end(), more->begin(), more->end());
    }
    return patterns;
  }
  if (type == "ByteLevel") {
    if (step.value("add_prefix_space", true)) return std::nullopt;
    if (step.value("use_regex", true)) patterns.emplace_back(kGpt2Pattern);
    return patterns;
  }
  if (type == "Digits" && step.value("individual_digits", false)) return std::vector{std::string(kDigitPattern)};
  if (type == "Split" && step.value("behavior", "") == "Isolated" && !step.value("invert", false) &&
      step.at("pattern").contains("Regex"))
    return std::vector{step.at("pattern").at("Regex").get<std::string>()};
  return std::nullopt;
}

/// llama.cpp has no normalisation, and its own converter leaves NFC out.
bool is_nfc(const Json& normalizer) { return normalizer.is_object() && normalizer.value("type", Json()) == "NFC"; }

/// Returns the name of llama.cpp's pre-tokenizer that splits like this byte-level BPE; empty if there is none.
std::string_view pre_tokenizer_of(const Json& tokenizer) {
  struct Row {
    std::string_view name;
    std::vector<std::string_view> patterns;  // as a tokenizer.json writes them
    bool ignore_merges;
  };
  const Json normalizer = tokenizer.value("normalizer", Json());
  if ((!normalizer.is_null() && !is_nfc(normalizer)) || !tokenizer.contains("pre_tokenizer")) return {};
  const auto wanted = patterns_of(tokenizer.at("pre_tokenizer"));
  if (!wanted) return {};
  const bool ignore_merges = tokenizer.at("model").value("ignore_merges", false);
  using namespace patterns;
  static const std::array<Row, 5> kRows{Row{"gpt-2", {kGpt2}, false}, Row{"smollm", {kDigit, kGpt2}, false},
                                        Row{"llama-bpe", {kLlama3}, true}, Row{"dbrx", {kLlama3}, false},
                                        Row{"qwen2", {kQwen2}, false}};
  const auto row = std::ranges::find_if(kRows, [&](const Row& known) {
    return known.ignore_merges == ignore_merges && std::ranges::equal(known.patterns, *wanted);
  });
  return row == kRows.end() ? std::string_view() : row->name;
}

/// Returns true for a step that replaces spaces by markers and puts one before the text, without a split.
bool is_metaspace(const Json& step) {
  return step.is_object() && step.value("type", Json()) == "Metaspace" &&
         step.value("replacement", Json()) == kSpaceMarker && !step.value("split", true);
}

/// Returns true for a split at spaces; the previous step has replaced all spaces.
bool splits_nothing(const Json& step) {
  return step.is_object() && step.value("type", Json()) == "Split" && step.at("pattern").value("String", Json()) == " ";
}

/// For SentencePiece's BPE: returns true if a text gets a space before it; nullopt for steps that llama.cpp lacks.
std::optional<bool> space_prefix(const Json& tokenizer) {
  const Json replace{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMarker}},
      prepend{{"type", "Prepend"}, {"prepend", kSpaceMarker}};
  const Json normalizer = tokenizer.value("normalizer", Json()), split = tokenizer.value("pre_tokenizer", Json());
  if (normalizer.is_null() && is_metaspace(split)) return split.value("prepend_scheme", Json("always")) != "never";
  if (!split.is_null() && !splits_nothing(split)) return std::nullopt;
  const Json steps = normalizer.is_object() ? normalizer.value("normalizers", Json::array({normalizer})) : Json();
  if (steps == Json::array({prepend, replace})) return true;
  if (steps == Json::array({replace})) return false;
  return std::nullopt;
}

struct Vocabulary {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;

  void grow(std::size_t tokens) {
    if (tokens <= texts.size()) return;
    texts.resize(tokens);
    types.resize(tokens, kGgufUnused);
  }
  void set(std::size_t id, const std::string& text, std::int32_t type) {
    grow(id + 1);
    texts[id] = text;
    types[id] = type;
  }
};

/// Returns a vocabulary of at least `tokens` ids.
Vocabulary vocabulary_of(const Json& tokenizer, std::size_t tokens) {
  Vocabulary vocabulary;
  vocabulary.grow(tokens);
  for (const auto& [text, id] : tokenizer.at("model").at("vocab").items())
    vocabulary.set(id.get<std::size_t>(), text, kGgufNormal);
  for (const Json& token : tokenizer.value("added_tokens", Json::array()))
    vocabulary.set(token.at("id").get<std::size_t>(), token.at("content").get<std::string>(),
                   token.value("special", false) ? kGgufControl : kGgufUserDefined);
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id)
    if (vocabulary.types[id] == kGgufUnused) vocabulary.texts[id] = "[PAD" + std::to_string(id) + "]";
  return vocabulary;
}

/// Returns the merges as "a b", also if the file has ["a", "b"].
std::vector<std::string> merges_of(const Json& tokenizer) {
  std::vector<std::string> merges;
  for (const Json& merge : tokenizer.at("model").at("merges"))
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : merge.at(0).get<std::string>() + ' ' + merge.at(1).get<std::string>());
  return merges;
}

/// Marks bytes and the unknown token, which have their own types in SentencePiece's vocabularies.
void mark_types(const Json& model, Vocabulary& vocabulary) {
  const std::string unknown = model.value("unk_token", Json()).is_string() ? model.at("unk_token") : Json("");
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    if (byte_of_token_name(vocabulary.texts[id])) vocabulary.types[id] = kGgufByte;
    if (!unknown.empty() && vocabulary.texts[id] == unknown) vocabulary.types[id] = kGgufUnknown;
  }
}

/// Returns scores that give the same merges: a later merge has a lower score; a token that no merge makes needs none.
/// Returns nullopt unless the list has every way to make each token, and all ways to make a token are consecutive.
std::optional<std::vector<float>> scores_of(const std::vector<std::string>& merges, const Vocabulary& vocabulary) {
  const std::unordered_set<std::string_view> tokens(vocabulary.texts.begin(), vocabulary.texts.end());
  std::unordered_map<std::string, std::size_t> first, count;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    std::string text = merges[rank];
    text.erase(text.find(' '), 1);
    const std::size_t start = first.emplace(text, rank).first->second;
    if (rank - start != count[text]++) return std::nullopt;
  }
  std::vector<float> scores;
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    const std::string_view text = vocabulary.texts[id];
    std::size_t ways = 0;
    for (std::size_t cut = 1; cut < text.size(); ++cut)
      if (tokens.contains(text.substr(0, cut)) && tokens.contains(text.substr(cut))) ++ways;
    const auto found = count.find(std::string(text));
    if (vocabulary.types[id] == kGgufNormal && ways != (found == count.end() ? 0 : found->second)) return std::nullopt;
    scores.push_back(-static_cast<float>(found == count.end() ? merges.size() : first.at(std::string(text))));
  }
  return scores;
}

template <class Strings>
std::vector<std::string_view> views(const Strings& strings) {
  return {strings.begin(), strings.end()};
}

/// Returns the id that config.json states (the first one of a list); nullopt if it states none.
std::optional<std::uint32_t> id_of_config(const Json& config, const char* key) {
  Json id = config.value(key, Json());
  if (id.is_array() && !id.empty()) id = Json(id.front());
  return id.is_number_unsigned() && id <= kMaxVocabulary ? std::optional(id.get<std::uint32_t>()) : std::nullopt;
}

void add_special_ids(const std::filesystem::path& folder, const AutoTokenizerFile& file, GgufMetadataWriter& metadata) {
  metadata.add("tokenizer.ggml.add_bos_token", file.tokenizer->adds_bos());
  if (file.tokenizer->bos() >= 0)
    metadata.add("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(file.tokenizer->bos()));
  const std::filesystem::path path = folder / "config.json";
  const Json config = std::filesystem::exists(path) ? parse_python_json(read_text_file(path, kMaxBytes), path.string())
                                                    : Json::object();
  for (const auto& [name, key, of_config] : {std::tuple("eos_token", "eos_token_id", "eos_token_id"),
                                             std::tuple("unk_token", "unknown_token_id", "unk_token_id"),
                                             std::tuple("pad_token", "padding_token_id", "pad_token_id")}) {
    const AddedSpec* token = file.settings.find_named(name);
    const std::int32_t id = token == nullptr ? -1 : file.tokenizer->find(token->content);
    const auto known = id < 0 ? id_of_config(config, of_config) : std::optional(static_cast<std::uint32_t>(id));
    if (known) metadata.add(std::string("tokenizer.ggml.") + key, *known);
  }
}

void add_chat_templates(const std::filesystem::path& folder, GgufMetadataWriter& metadata) {
  std::vector<std::string> names;
  for (const auto& [name, text] : read_chat_templates(folder)) {
    if (name == "default") {
      metadata.add("tokenizer.chat_template", std::string_view(text));
      continue;
    }
    std::string safe = name;  // as the gguf package writes it
    for (char& c : safe)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    if (std::ranges::find(names, safe) != names.end()) continue;
    metadata.add("tokenizer.chat_template." + safe, std::string_view(text));
    names.push_back(safe);
  }
  if (!names.empty()) metadata.add("tokenizer.chat_templates", std::span<const std::string_view>(views(names)));
}

/// Returns the ways in which llama.cpp's ids may differ from Transformers'.
std::vector<std::string> differences(const AutoTokenizerFile& file) {
  std::vector<std::string> notes;
  const Json& document = file.document;
  const auto has_flag = [](const Json& token) {
    return token.at("lstrip") || token.at("rstrip") || token.at("single_word");
  };
  if (std::ranges::any_of(document.at("added_tokens"), has_flag))
    notes.emplace_back(
        "llama.cpp does not support lstrip, rstrip and single_word: ids next to added tokens may differ");
  if (is_nfc(document.value("normalizer", Json())))
    notes.emplace_back("llama.cpp does not apply NFC: ids of texts in another normal form differ");
  if (is_metaspace(document.value("pre_tokenizer", Json())))
    notes.emplace_back(
        "llama.cpp puts a space before every text between special tokens: ids after them, and of texts that begin with "
        "a "
        "space, differ");
  if (file.settings.split_special_tokens)
    notes.emplace_back("llama.cpp parses special tokens only on request: split_special_tokens is not written");
  return notes;
}

}  // namespace

std::string add_tokenizer_json(const std::filesystem::path& folder, std::size_t tokens, GgufMetadataWriter& metadata,
                               std::vector<std::string>& notes) {
  const std::filesystem::path path = folder / "tokenizer.json";
  if (!std::filesystem::exists(path)) return "found no tokenizer.json";
  const AutoTokenizerFile file = read_auto_tokenizer(path);
  const Json& tokenizer = file.document;
  const Json& model = tokenizer.at("model");
  if (model.value("type", "BPE") != "BPE") return "found " + model.value("type", "") + ", expected BPE";
  const bool marked = model.value("byte_fallback", false);
  const std::optional<bool> prefix = marked ? space_prefix(tokenizer) : std::nullopt;
  const std::string_view pre = marked ? "default" : pre_tokenizer_of(tokenizer);
  if (marked ? !prefix : pre.empty()) return "found a normalizer or pre-tokenizer that llama.cpp has no name of";

  Vocabulary vocabulary = vocabulary_of(tokenizer, tokens);
  const std::vector<std::string> merges = merges_of(tokenizer);
  if (marked) mark_types(model, vocabulary);
  const auto scores = marked ? scores_of(merges, vocabulary) : std::nullopt;
  if (marked && !scores) return "found merges that scores of tokens cannot express";
  metadata.add("tokenizer.ggml.model", marked ? "llama" : "gpt2");
  metadata.add("tokenizer.ggml.pre", pre);
  metadata.add("tokenizer.ggml.tokens", std::span<const std::string_view>(views(vocabulary.texts)));
  if (marked) {
    metadata.add("tokenizer.ggml.scores", std::span<const float>(*scores));
    metadata.add("tokenizer.ggml.add_space_prefix", *prefix);
  } else {
    metadata.add("tokenizer.ggml.merges", std::span<const std::string_view>(views(merges)));
  }
  metadata.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(vocabulary.types));
  add_special_ids(folder, file, metadata);
  add_chat_templates(folder, metadata);
  for (std::vector<std::string> more : {file.tokenizer->notes(), differences(file)})
    notes.insert(notes.end(), more.begin(), more.end());
  return {};
}

}  // namespace kvs::inline tokenizer
