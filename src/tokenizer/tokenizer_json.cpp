// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_json.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "io/file.h"
#include "tokenizer/added_vocabulary.h"
#include "tokenizer/auto_tokenizer.h"
#include "tokenizer/tokenizer_class.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs::inline tokenizer {
namespace {

constexpr std::size_t kJsonFileLimit = 256UL << 20;

class TokenizerBuilder {
 public:
  TokenizerBuilder(const Json& document, std::string_view where, std::size_t bytes, const TokenizerSettings& settings)
      : file_{std::string(where), id_limit(bytes)}, root_(document, file_.where), settings_(settings) {}

  std::unique_ptr<Tokenizer> build() {
    if (root_.has("version") && root_.at("version").string() != "1.0") {
      file_.unsupported(root_.at("version"), "version", root_.at("version").string(), "1.0");
    }
    if (root_.has("post_processor")) read_post_processor(root_.at("post_processor"));
    JsonSteps steps = read_tokenizer_steps(root_, file_);
    parts_.normalizers = std::move(steps.normalizers);
    parts_.steps = std::move(steps.splits);
    for (const std::string& text : settings_.notes) note(text);
    const auto model = make_model_reader(root_.at("model"), file_, steps.has_byte_level);
    parts_.tokens.resize(model->size());
    model->claim_tokens(parts_.tokens);
    AddedVocabulary added(parts_.tokens, model->count());
    add_own(added);
    note_unknown_bos();
    for (const std::string& text : added.add_all(settings_)) note(text);
    parts_.added = AddedTokens(added.tokens(false, settings_.split_special_tokens));
    parts_.added_normalized = normalized_tokens(added);
    added_ = added.json();
    parts_.model = model->read(parts_.tokens, parts_.steps);
    choose_bos();
    return std::make_unique<PipelineTokenizer>(std::move(parts_));
  }
  /// Returns all added tokens, once they are read.
  const Json& added() const { return added_; }

 private:
  /// All supported post-processors only put special tokens around a text. The token that they put before the text is
  /// the begin-of-sequence token, and the file then asks for it. Transformers 5 uses only the post-processor and
  /// ignores `add_bos_token` of tokenizer_config.json.
  void read_post_processor(const JsonCursor& processor) {
    const std::string& type = processor.at("type").string();
    if (type == "Sequence") {
      const JsonCursor list = processor.at("processors");
      for (std::size_t i = 0; i < list.array_size(); ++i) read_post_processor(list.at(i));
    } else if (type == "TemplateProcessing") {
      read_template(processor);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      set_template_bos(processor.at("cls").at(std::size_t{1}));
    } else if (type != "ByteLevel") {
      file_.unsupported(processor.at("type"), "post-processor", type,
                        "Sequence, TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel");
    }
  }

  void read_template(const JsonCursor& processor) {
    const JsonCursor single = processor.at("single");
    if (single.array_size() == 0 || !single.at(std::size_t{0}).has("SpecialToken")) return;
    const JsonCursor name = single.at(std::size_t{0}).at("SpecialToken").at("id");
    const JsonCursor ids = processor.at("special_tokens").at(name.string()).at("ids");
    if (ids.array_size() > 0) set_template_bos(ids.at(std::size_t{0}));
  }

  void set_template_bos(const JsonCursor& id) {
    if (!template_bos_) template_bos_.emplace(id);
  }

  void note_unknown_bos() {
    const AddedSpec* bos = settings_.find_named("bos_token");
    if (bos == nullptr || parts_.tokens.find(bos->content) >= 0) return;
    const auto is_bos = [&](const auto& row) { return row.second.content == bos->content; };
    if (std::ranges::any_of(settings_.added, is_bos)) return;
    note("the bos_token " + TokenizerJson::shown(bos->content) +
         " is not in the vocabulary; as in Transformers it becomes a new token, which no text was trained with");
  }

  void choose_bos() {
    if (template_bos_) {
      const std::uint64_t id = template_bos_->unsigned_integer(parts_.tokens.known.size() - 1);
      if (!parts_.tokens.known[id]) template_bos_->fail("the id of a token");
      parts_.bos = static_cast<std::int32_t>(id);
      parts_.adds_bos = true;
    } else if (const AddedSpec* bos = settings_.find_named("bos_token"); bos != nullptr) {
      parts_.bos = parts_.tokens.find(bos->content);
    }
  }

  /// Adds the list of tokenizer.json. `tokenizers` ignores the ids in it and assigns its own.
  void add_own(AddedVocabulary& added) {
    if (!root_.has("added_tokens")) return;
    const JsonCursor list = root_.at("added_tokens");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonCursor entry = list.at(i);
      const AddedSpec token = read_listed_spec(entry);
      const std::uint64_t stated = file_.id_at(entry.at("id"));
      note(AddedVocabulary::other_id_note(token, stated, added.add(token)));
    }
  }

  /// Returns the tokens whose texts are searched for after normalisation.
  AddedTokens normalized_tokens(const AddedVocabulary& added) const {
    std::vector<AddedToken> tokens = added.tokens(true, settings_.split_special_tokens);
    for (AddedToken& token : tokens) {
      std::string storage;
      std::string text(normalize(parts_.normalizers, token.text, storage));
      if (text.empty())
        throw Error(ErrorCode::kInput, file_.where,
                    "the added token " + TokenizerJson::shown(token.text) + " normalises to nothing");
      token.text = std::move(text);
    }
    return AddedTokens(std::move(tokens));
  }

  void note(const std::string& text) {
    if (!text.empty()) parts_.notes.push_back(file_.where + ": " + text);
  }

  TokenizerJson file_;
  JsonCursor root_;
  const TokenizerSettings& settings_;
  Json added_ = Json::array();
  TokenizerParts parts_;
  std::optional<JsonCursor> template_bos_;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view bytes, std::string_view where) {
  const Json document = parse_json(bytes, where, {.bytes = kJsonFileLimit});
  const TokenizerSettings settings;
  return TokenizerBuilder(document, where, bytes.size(), settings).build();
}

AutoTokenizerFile read_auto_tokenizer(const std::filesystem::path& path) {
  const std::string bytes = read_text_file(path, kJsonFileLimit);
  AutoTokenizerFile file;
  file.document = parse_json(bytes, path.string(), {.bytes = kJsonFileLimit});
  file.settings = read_tokenizer_settings(path.parent_path(), file.document);
  apply_tokenizer_class(file.document, file.settings);
  TokenizerBuilder builder(file.document, path.string(), bytes.size(), file.settings);
  file.tokenizer = builder.build();
  file.document["added_tokens"] = builder.added();
  return file;
}

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path) {
  return read_auto_tokenizer(path).tokenizer;
}

}  // namespace kvs::inline tokenizer
