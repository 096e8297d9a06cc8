// SPDX-License-Identifier: Apache-2.0
#include "model/conversation.h"

#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "io/descriptor.h"
#include "io/file.h"
#include "io/gguf.h"
#include "io/python_json.h"
#include "model/tensor_shape.h"
#include "tokenizer/chat_templates.h"
#include "tokenizer/gguf_vocabulary.h"

namespace kvs::inline model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;
constexpr const char* kEosKey = "eos_token_id";

const GgufFile& gguf_of(const ModelSource& source) { return static_cast<const GgufFile&>(source.archive()); }

/// Adds an id or a list of ids.
void add_ids(const JsonCursor& given, std::size_t vocabulary, std::set<std::int32_t>& ids) {
  const auto add = [&](const JsonCursor& id) {
    ids.insert(static_cast<std::int32_t>(id.integer(0, static_cast<std::int64_t>(vocabulary) - 1)));
  };
  if (!given.value().is_array()) return add(given);
  for (std::size_t n = 0; n < given.array_size(); ++n) add(given.at(n));
}

/// Adds the end tokens of generation_config.json, otherwise those of config.json.
void add_folder_ids(const ModelSource& source, std::set<std::int32_t>& ids) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const fs::path path = source.path() / name;
    if (!is_there(path)) continue;
    const Json document =
        parse_python_json(read_text_file(path, kMostConfigBytes), path.string(), {.bytes = kMostConfigBytes});
    const JsonCursor root(document, path.string());
    if (root.has(kEosKey)) return add_ids(root.at(kEosKey), source.config().vocabulary, ids);
    if (root.has("text_config") && root.at("text_config").has(kEosKey))
      return add_ids(root.at("text_config").at(kEosKey), source.config().vocabulary, ids);
  }
}

/// Source of the texts: llama.cpp, src/llama-vocab.cpp, special_eog_ids.
void add_gguf_ids(const ModelSource& source, const Tokenizer* tokenizer, std::set<std::int32_t>& ids) {
  constexpr std::array<std::string_view, 13> kTexts{
      "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>",      "<|call|>",           "<end_of_turn>", "<|endoftext|>",
      "<|eom_id|>", "<EOT>",      "_<EOT>",  "<|end_of_text|>", "<end_of_utterance>", "<turn|>"};
  for (const char* name : {kEosKey, "eot_token_id", "eom_token_id"})
    if (const auto id = stated_gguf_token(gguf_of(source), name, source.config().vocabulary)) ids.insert(*id);
  if (tokenizer == nullptr) return;
  for (const std::string_view text : kTexts)
    if (const std::int32_t id = tokenizer->find(text); id >= 0) ids.insert(id);
}

}  // namespace

std::string chat_template_of(const ModelSource& source) {
  constexpr const char* kKey = "tokenizer.chat_template";
  if (source.format() == ModelFormat::kGguf)
    return gguf_of(source).has(kKey) ? std::string(gguf_of(source).get_string(kKey)) : "";
  const std::map<std::string, std::string> templates = read_chat_templates(source.path());
  const auto found = templates.find("default");
  return found == templates.end() ? "" : found->second;
}

std::vector<std::int32_t> end_tokens_of(const ModelSource& source, const Tokenizer* tokenizer) {
  std::set<std::int32_t> ids;
  if (source.format() == ModelFormat::kGguf)
    add_gguf_ids(source, tokenizer, ids);
  else
    add_folder_ids(source, ids);
  return {ids.begin(), ids.end()};
}

}  // namespace kvs::inline model
