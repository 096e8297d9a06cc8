#include "io/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "io/descriptor.h"
#include "io/file.h"

namespace kvs {
namespace {

constexpr std::size_t kJsonFileLimit = 256UL << 20;

class TokenizerBuilder {
 public:
  TokenizerBuilder(const Json& document, std::string_view where, std::size_t bytes)
      : file_{std::string(where), id_limit(bytes)}, root_(document, file_.where) {}

  std::unique_ptr<Tokenizer> build(std::string_view bos) {
    if (root_.has("version") && root_.at("version").string() != "1.0") {
      file_.unsupported(root_.at("version"), "version", root_.at("version").string(), "1.0");
    }
    if (root_.has("post_processor")) read_post_processor(root_.at("post_processor"));
    JsonSteps steps = read_tokenizer_steps(root_, file_);
    parts_.normalizers = std::move(steps.normalizers);
    parts_.steps = std::move(steps.splits);
    const auto model = make_model_reader(root_.at("model"), file_, steps.has_byte_level);
    parts_.tokens.resize(std::max(model->size(), added_size()));
    model->claim_tokens(parts_.tokens);
    read_added_tokens();
    parts_.model = model->read(parts_.tokens, parts_.steps);
    choose_bos(bos);
    return std::make_unique<PipelineTokenizer>(std::move(parts_));
  }

 private:
  /// All of these only put special tokens around a text, which is not asked for here; what they put before it is the
  /// begin-of-sequence token of a file whose configuration names none.
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

  void choose_bos(std::string_view bos) {
    if (!bos.empty()) {
      parts_.bos = parts_.tokens.find(bos);
      if (parts_.bos < 0) {
        throw Error(
            ErrorCode::kInput, file_.where,
            "the bos_token " + TokenizerJson::shown(bos) + " of tokenizer_config.json is not in the vocabulary");
      }
    } else if (template_bos_) {
      const std::uint64_t id = template_bos_->unsigned_integer(parts_.tokens.known.size() - 1);
      if (!parts_.tokens.known[id]) template_bos_->fail("the id of a token");
      parts_.bos = static_cast<std::int32_t>(id);
    }
  }

  /// Ids are known to be below the limit before anything is sized by them.
  std::uint64_t added_size() const {
    std::uint64_t size = 0;
    if (!root_.has("added_tokens")) return size;
    const JsonCursor list = root_.at("added_tokens");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      size = std::max(size, file_.id_at(list.at(i).at("id")) + 1);
    }
    return size;
  }

  void read_added_tokens() {
    if (!root_.has("added_tokens")) return;
    const JsonCursor list = root_.at("added_tokens");
    std::vector<AddedToken> plain, normalized;
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonCursor entry = list.at(i);
      const std::string& text = entry.at("content").string();
      if (text.empty()) continue;  // as `tokenizers`: it can match nothing
      const std::uint64_t id = file_.id_at(entry.at("id"));
      claim_added(entry, text, id);
      AddedToken token{.text = text,
                       .id = static_cast<std::int32_t>(id),
                       .single_word = TokenizerJson::is_true(entry, "single_word"),
                       .lstrip = TokenizerJson::is_true(entry, "lstrip"),
                       .rstrip = TokenizerJson::is_true(entry, "rstrip")};
      if (!TokenizerJson::is_true(entry, "normalized")) {
        plain.push_back(std::move(token));
        continue;
      }
      std::string storage;
      token.text = normalize(parts_.normalizers, text, storage);
      if (token.text.empty()) file_.malformed(entry, "token " + TokenizerJson::shown(text) + " normalises to nothing");
      normalized.push_back(std::move(token));
    }
    parts_.added = AddedTokens(std::move(plain));
    parts_.added_normalized = AddedTokens(std::move(normalized));
  }

  void claim_added(const JsonCursor& entry, const std::string& text, std::uint64_t id) {
    const std::int32_t known = parts_.tokens.find(text);
    if (known < 0) {
      claim_token(parts_.tokens, entry, file_, text, id);
    } else if (static_cast<std::uint64_t>(known) != id) {
      file_.malformed(entry, "token " + TokenizerJson::shown(text) + " has id " + std::to_string(id) +
                                 ", elsewhere it has " + std::to_string(known));
    } else if (!parts_.tokens.bytes[id].empty()) {
      file_.malformed(entry,
                      "token " + TokenizerJson::shown(text) + " with id " + std::to_string(id) + " is added twice");
    }
    parts_.tokens.bytes[id] = text;
  }

  TokenizerJson file_;
  JsonCursor root_;
  TokenizerParts parts_;
  std::optional<JsonCursor> template_bos_;
};

/// The `bos_token` of the tokenizer_config.json beside `path`, or "": tokenizer.json itself names none.
std::string bos_beside(const std::filesystem::path& path) {
  constexpr std::size_t kConfigLimit = 16UL << 20;
  const std::filesystem::path config = path.parent_path() / "tokenizer_config.json";
  if (!is_there(config)) return {};
  const Json document = parse_json(read_text_file(config, kConfigLimit), config.string(), {.bytes = kConfigLimit});
  const JsonCursor root(document, config.string());
  if (!root.has("bos_token")) return {};
  const JsonCursor bos = root.at("bos_token");
  return bos.value().is_object() ? bos.at("content").string() : bos.string();
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view bytes, std::string_view where, std::string_view bos) {
  const Json document = parse_json(bytes, where, {.bytes = kJsonFileLimit});
  return TokenizerBuilder(document, where, bytes.size()).build(bos);
}

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path) {
  return parse_tokenizer_json(read_text_file(path, kJsonFileLimit), path.string(), bos_beside(path));
}

}  // namespace kvs
