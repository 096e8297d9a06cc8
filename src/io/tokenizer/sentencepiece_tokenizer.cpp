#include <sentencepiece_processor.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/json.h"
#include "io/tokenizer/byte_alphabet.h"
#include "io/tokenizer/pipeline_tokenizer.h"
#include "io/tokenizer/sentencepiece_check.h"

namespace sentencepiece::logging {
void SetMinLogLevel(int level);  // exported by the library, declared in none of its installed headers
}

namespace kvs {
namespace {

constexpr std::size_t kModelFileLimit = 64UL << 20;

/// Control, unknown and added pieces are cut out of the text; each stretch between them is a text of its own to the
/// library, which normalises it and puts its space before it.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view bytes, std::string_view where, const std::vector<AddedToken>& added)
      : where_(where) {
    const SentencePieceModel model = check_sentencepiece_model(bytes, where);
    static std::once_flag silenced;  // libraries never print
    std::call_once(silenced, [] { sentencepiece::logging::SetMinLogLevel(3); });
    const auto status = processor_.LoadFromSerializedProto(bytes);
    if (!status.ok()) throw Error(ErrorCode::kInput, where, "found no model: " + status.ToString());
    if (static_cast<std::size_t>(processor_.GetPieceSize()) != model.pieces.size()) {
      throw Error(ErrorCode::kInput, where,
                  "found " + std::to_string(processor_.GetPieceSize()) + " pieces, expected " +
                      std::to_string(model.pieces.size()));
    }
    std::vector<AddedToken> special = read_pieces(model);
    for (const AddedToken& token : added) add(token, where, special);
    special_ = AddedTokens(std::move(special));
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
      throw Error(ErrorCode::kInternal, "tokenizer", "found invalid UTF-8 at byte " + std::to_string(bad));
    }
    std::vector<std::int32_t> ids;
    special_.split_leftmost(text, [&](const AddedTokens::Piece& piece) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        return;
      }
      std::vector<int> some;
      const auto status = processor_.Encode(piece.text, &some);
      // The text is sound: the model is not, such as one whose mark of a space is a control piece.
      if (!status.ok())
        throw Error(ErrorCode::kInput, where_, "found a model that cannot encode: " + status.ToString());
      ids.insert(ids.end(), some.begin(), some.end());
    });
    return ids;
  }

  std::string decode(const std::vector<std::int32_t>& ids) const override { return tokens_.decode(ids); }
  std::size_t vocabulary_size() const noexcept override { return tokens_.bytes.size(); }
  std::int32_t bos() const noexcept override { return processor_.bos_id(); }
  std::int32_t find(std::string_view token) const noexcept override { return tokens_.find(token); }

 private:
  /// Fills tokens_. Returns the control and unknown pieces.
  std::vector<AddedToken> read_pieces(const SentencePieceModel& model) {
    using PieceType = SentencePieceModel::PieceType;
    std::vector<AddedToken> special;
    tokens_.resize(model.pieces.size());
    tokens_.known.assign(model.pieces.size(), true);
    for (std::size_t id = 0; id < model.pieces.size(); ++id) {
      const auto& [text, type] = model.pieces[id];
      tokens_.ids_by_text.emplace(text, static_cast<std::int32_t>(id));
      const bool is_special = type == PieceType::kControl || type == PieceType::kUnknown;
      tokens_.bytes[id] = is_special ? text : bytes_of_marked_token(text);
      if (is_special) special.push_back({.text = text, .id = static_cast<std::int32_t>(id)});
    }
    return special;
  }

  void add(const AddedToken& token, std::string_view where, std::vector<AddedToken>& special) {
    const std::int32_t known = tokens_.find(token.text);
    const auto index = static_cast<std::size_t>(token.id);
    const bool is_taken = known < 0 && index < tokens_.known.size() && tokens_.known[index];
    if ((known >= 0 && known != token.id) || is_taken) {
      throw Error(ErrorCode::kInput, where,
                  "the added token \"" + printable(token.text, 100) + "\" has id " + std::to_string(token.id) +
                      ", expected " + (known >= 0 ? std::to_string(known) : "one that no other token has"));
    }
    if (index >= tokens_.known.size()) tokens_.resize(index + 1);
    tokens_.known[index] = true;
    tokens_.bytes[index] = token.text;
    tokens_.ids_by_text.emplace(token.text, token.id);
    const bool is_special = known >= 0 && (processor_.IsControl(known) || processor_.IsUnknown(known));
    if (!is_special) special.push_back(token);
  }

  std::string where_;
  sentencepiece::SentencePieceProcessor processor_;
  AddedTokens special_;
  TokenTable tokens_;
};

/// added_tokens.json beside a tokenizer.model: texts that were added to its pieces, and their ids.
std::vector<AddedToken> added_beside(const std::filesystem::path& path, std::size_t ids) {
  constexpr std::size_t kAddedLimit = 16UL << 20;
  const std::filesystem::path file = path.parent_path() / "added_tokens.json";
  std::vector<AddedToken> added;
  if (!is_there(file)) return added;
  const Json document = parse_json(read_text_file(file, kAddedLimit), file.string(), {.bytes = kAddedLimit});
  const JsonCursor root(document, file.string());
  if (!root.value().is_object()) root.fail("an object of tokens and ids");
  for (const auto& [text, value] : root.value().items()) {
    const JsonCursor cursor(value, file.string(), "/" + printable(text, 100));
    const auto id = static_cast<std::int32_t>(cursor.unsigned_integer(ids - 1));
    if (!text.empty()) added.push_back({.text = text, .id = id});
  }
  return added;
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_model(std::string_view bytes, std::string_view where,
                                                 const std::vector<AddedToken>& added) {
  try {
    return std::make_unique<SentencePieceTokenizer>(bytes, where, added);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // the library's automata throw their own
    throw Error(ErrorCode::kInput, where, std::string("found no model: ") + error.what());
  }
}

std::unique_ptr<Tokenizer> load_tokenizer_model(const std::filesystem::path& path) {
  const std::string bytes = read_text_file(path, kModelFileLimit);
  return parse_tokenizer_model(bytes, path.string(), added_beside(path, id_limit(bytes.size())));
}

}  // namespace kvs
