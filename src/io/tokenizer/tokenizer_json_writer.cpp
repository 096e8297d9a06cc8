#include "io/tokenizer/tokenizer_json_writer.h"

#include "io/file.h"
#include "io/json.h"
#include "io/tokenizer/gguf_vocabulary.h"
#include "io/tokenizer/split.h"

namespace kvs {
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
                    {"special", true}});
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

/// Puts the begin-of-sequence token before a text, if the file asks for it.
Json post_processor(const GgufVocabulary& vocabulary) {
  const std::string key = std::string(kPrefix) + "add_bos_token";
  if (vocabulary.bos < 0 || !vocabulary.file.has(key) || !vocabulary.file.get_boolean(key)) return byte_level();
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

Json bpe_model(const GgufVocabulary& vocabulary, const GgufPreTokenizer& pre) {
  Json::object_t ids;  // pushed unsearched: operator[] of an ordered object looks at every member
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) ids.emplace_back(vocabulary.texts[id], id);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", pre.ignore_merges},
          {"vocab", Json(std::move(ids))},
          {"merges", vocabulary.strings(std::string(kPrefix) + "merges")}};
}

Json tokenizer_config(const GgufVocabulary& vocabulary) {
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [name, key] :
       {std::pair("bos_token", "bos_token_id"), std::pair("eos_token", "eos_token_id"),
        std::pair("unk_token", "unknown_token_id"), std::pair("pad_token", "padding_token_id")}) {
    const std::string full = std::string(kPrefix) + key;
    if (vocabulary.file.has(full))
      config[name] = vocabulary.texts[vocabulary.file.get_unsigned(full, vocabulary.texts.size() - 1)];
  }
  if (const std::string chat = text_of(vocabulary.file, "tokenizer.chat_template", ""); !chat.empty())
    config["chat_template"] = chat;
  return config;
}

}  // namespace

std::string write_tokenizer_json(const GgufFile& file, const std::filesystem::path& folder) {
  const std::string model = text_of(file, std::string(kPrefix) + "model", "");
  if (model != "gpt2") return "found tokenizer " + GgufVocabulary::shown(model) + ", expected byte-level BPE (gpt2)";
  const std::string name = text_of(file, std::string(kPrefix) + "pre", "default");
  const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(name);
  if (pre == nullptr) return "found pre-tokenizer " + GgufVocabulary::shown(name) + ", which is not known";
  const GgufVocabulary vocabulary = read_gguf_vocabulary(file);
  const Json tokenizer{{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added_tokens(vocabulary)},
                       {"normalizer", nullptr},
                       {"pre_tokenizer", pre_tokenizer(*pre)},
                       {"post_processor", post_processor(vocabulary)},
                       {"decoder", byte_level()},
                       {"model", bpe_model(vocabulary, *pre)}};
  write_file_atomically(folder / "tokenizer.json", dump_json(tokenizer) + "\n", false);
  write_file_atomically(folder / "tokenizer_config.json", dump_json(tokenizer_config(vocabulary)) + "\n", false);
  return {};
}

}  // namespace kvs
