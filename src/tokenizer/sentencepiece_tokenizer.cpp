// SPDX-License-Identifier: Apache-2.0
#include <sentencepiece_processor.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "io/file.h"
#include "tokenizer/added_vocabulary.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/sentencepiece_check.h"

namespace sentencepiece::logging {
void SetMinLogLevel(int level);  // exported by the library, but declared in none of its installed headers
}

namespace kvs::inline tokenizer {
namespace {

constexpr std::size_t kModelFileLimit = 64UL << 20;

/// Cuts control, unknown and added pieces out of the text. The library treats each part between them as a text of its
/// own: it normalises the part and puts a space before it.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view bytes, std::string_view where, const TokenizerSettings& settings)
      : where_(where), asks_for_bos_(settings.add_bos_token) {
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
    AddedVocabulary added(tokens_, model.pieces.size());
    for (const AddedSpec& piece : read_pieces(model)) added.add(piece);
    for (const std::string& note : added.add_all(settings)) notes_.push_back(where_ + ": " + note);
    std::vector<AddedToken> tokens;
    for (const bool normalized : {false, true})
      for (AddedToken& token : added.tokens(normalized, settings.split_special_tokens))
        tokens.push_back(std::move(token));
    special_ = AddedTokens(std::move(tokens));
    const AddedSpec* bos = settings.find_named("bos_token");
    bos_ = bos == nullptr ? processor_.bos_id() : tokens_.find(bos->content);
  }

  std::vector<std::int32_t> encode_turns(std::string_view text, std::span<const TextRange> literal) const override {
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
      throw Error(ErrorCode::kInternal, "tokenizer", "found invalid UTF-8 at byte " + std::to_string(bad));
    }
    std::vector<std::int32_t> ids;
    special_.split_leftmost(text, literal, [&](const AddedTokens::Piece& piece) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        return;
      }
      std::vector<int> some;
      const auto status = processor_.Encode(piece.text, &some);
      // The text is valid, so the model is faulty: for example, the mark of a space is a control piece.
      if (!status.ok())
        throw Error(ErrorCode::kInput, where_, "found a model that cannot encode: " + status.ToString());
      ids.insert(ids.end(), some.begin(), some.end());
    });
    return ids;
  }

  std::string decode(const std::vector<std::int32_t>& ids) const override { return tokens_.decode(ids); }
  std::size_t vocabulary_size() const noexcept override { return tokens_.bytes.size(); }
  std::int32_t bos() const noexcept override { return bos_; }
  bool adds_bos() const noexcept override { return asks_for_bos_ && bos_ >= 0; }
  std::int32_t find(std::string_view token) const noexcept override { return tokens_.find(token); }
  const std::vector<std::string>& notes() const noexcept override { return notes_; }

 private:
  /// Fills tokens_. Returns the control and unknown pieces.
  std::vector<AddedSpec> read_pieces(const SentencePieceModel& model) {
    using PieceType = SentencePieceModel::PieceType;
    std::vector<AddedSpec> special;
    tokens_.resize(model.pieces.size());
    tokens_.known.assign(model.pieces.size(), true);
    for (std::size_t id = 0; id < model.pieces.size(); ++id) {
      const auto& [text, type] = model.pieces[id];
      tokens_.ids_by_text.emplace(text, static_cast<std::int32_t>(id));
      const bool is_special = type == PieceType::kControl || type == PieceType::kUnknown;
      tokens_.bytes[id] = is_special ? text : bytes_of_marked_token(text);
      if (is_special) special.push_back(AddedSpec::special_text(text));
    }
    return special;
  }

  std::string where_;
  bool asks_for_bos_;
  sentencepiece::SentencePieceProcessor processor_;
  AddedTokens special_;
  TokenTable tokens_;
  std::int32_t bos_ = -1;
  std::vector<std::string> notes_;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_model(std::string_view bytes, std::string_view where,
                                                 const TokenizerSettings& settings) {
  try {
    return std::make_unique<SentencePieceTokenizer>(bytes, where, settings);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // exceptions of the library's automata
    throw Error(ErrorCode::kInput, where, std::string("found no model: ") + error.what());
  }
}

std::unique_ptr<Tokenizer> load_tokenizer_model(const std::filesystem::path& path) {
  const std::string bytes = read_text_file(path, kModelFileLimit);
  return parse_tokenizer_model(bytes, path.string(), read_tokenizer_settings(path.parent_path(), Json()));
}

}  // namespace kvs::inline tokenizer
