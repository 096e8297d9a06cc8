// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/unigram.h"

namespace kvs::inline tokenizer {
namespace {

class BpeReader final : public JsonModelReader {
 public:
  BpeReader(const JsonCursor& model, const TokenizerJson& file, bool is_byte_level)
      : file_(file), model_(model), vocabulary_(model.at("vocab")), is_byte_level_(is_byte_level) {
    if (model.has("dropout") && model.at("dropout").real() != 0)
      file.unsupported(model.at("dropout"), "option", "dropout", "0");
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (model.has(key) && !model.at(key).string().empty())
        file.unsupported(model.at(key), "option", key, "an empty one");
    }
    falls_back_ = TokenizerJson::is_true(model, "byte_fallback");
    if (!vocabulary_.value().is_object()) vocabulary_.fail("an object of tokens and ids");
    if (vocabulary_.value().empty()) file.malformed(vocabulary_, "found no token");
  }

  std::uint64_t size() const override {
    std::uint64_t size = 0;
    for (const auto& [text, id] : vocabulary_.value().items()) size = std::max(size, checked_id(text, id) + 1);
    return size;
  }

  std::size_t count() const override { return vocabulary_.value().size(); }

  void claim_tokens(TokenTable& tokens) const override {
    for (const auto& [text, id] : vocabulary_.value().items()) {
      tokens.ids_by_text.emplace(text, id.get<std::int32_t>());  // an object has each text once
      tokens.known[id.get<std::uint64_t>()] = true;
    }
  }

  std::unique_ptr<const WordModel> read(TokenTable& tokens, SplitSteps& splits) const override {
    using Unit = BpeOptions::Unit;
    auto bpe = std::make_unique<Bpe>(tokens.bytes.size(),
                                     BpeOptions{.unit = is_byte_level_ ? Unit::kByte : Unit::kCharacter,
                                                .ignore_merges = TokenizerJson::is_true(model_, "ignore_merges")});
    const Unspelt unspelt = add_tokens(*bpe, tokens);
    if (falls_back_) bpe->set_byte_fallback(byte_fallback(*bpe));
    if (model_.has("unk_token")) set_unknown(*bpe);
    add_merges(*bpe, unspelt);
    // For these models a word is the whole text; shorter words repeat.
    if (!is_byte_level_) {
      const std::bitset<256> joined = bpe->bytes_joined_before(kSpaceMarker);
      if (!joined.all()) splits.push_back(make_marker_split(kSpaceMarker, joined));
    }
    return bpe;
  }

 private:
  std::uint64_t checked_id(const std::string& text, const Json& id) const {
    if (!id.is_number_integer() || id < 0 || id >= file_.ids) {
      file_.malformed(vocabulary_, "token " + TokenizerJson::shown(text) + " has id " +
                                       printable(id.dump(-1, ' ', false, Json::error_handler_t::replace), 40) +
                                       ", expected an integer from 0 to " + std::to_string(file_.ids - 1));
    }
    return id.get<std::uint64_t>();
  }

  /// Returns the bytes of `text` (a text of the vocabulary) as they occur in the model's words, or nullopt.
  std::optional<std::string> spelling(const std::string& text) const {
    if (is_byte_level_) return bytes_of_token(text);
    return text;
  }

  using Unspelt = std::unordered_set<std::string>;  // tokens of the vocabulary outside the byte alphabet

  Unspelt add_tokens(Bpe& bpe, TokenTable& tokens) const {
    Unspelt unspelt;
    for (const auto& [text, value] : vocabulary_.value().items()) {
      const auto id = value.get<std::uint64_t>();
      const bool is_added = !tokens.bytes[id].empty();
      std::optional<std::string> bytes = spelling(text);
      if (!is_added) tokens.bytes[id] = is_byte_level_ ? bytes.value_or(text) : bytes_of_marked_token(text);
      if (bytes)
        bpe.add_token(std::move(*bytes), static_cast<std::uint32_t>(id));
      else
        unspelt.insert(text);
    }
    return unspelt;
  }

  /// Uses tokens of the vocabulary only, not added tokens. For bytes that reach the model in the byte alphabet, the
  /// tokens are those of the bytes of the byte's representing character.
  Bpe::ByteFallback byte_fallback(const Bpe& bpe) const {
    Bpe::ByteFallback fallback;
    for (std::size_t byte = 0; byte < fallback.size(); ++byte) {
      const std::string unit =
          is_byte_level_ ? stand_in_of_byte(static_cast<unsigned char>(byte)) : std::string(1, static_cast<char>(byte));
      for (const char part : unit)
        fallback[byte].push_back(bpe.find(name_of_byte_token(static_cast<unsigned char>(part))));
      if (std::ranges::find(fallback[byte], Bpe::kNone) != fallback[byte].end()) fallback[byte].clear();
    }
    return fallback;
  }

  /// Uses tokens of the vocabulary only. An unknown token outside the vocabulary is an error once a text needs it, as
  /// in `tokenizers`.
  void set_unknown(Bpe& bpe) const {
    const std::string& token = model_.at("unk_token").string();
    const auto row = vocabulary_.value().find(token);
    if (row == vocabulary_.value().end()) {
      bpe.refuse_unknown(file_.where + ": " + model_.at("unk_token").pointer(), TokenizerJson::shown(token));
    } else {
      bpe.set_unknown(row->get<std::uint32_t>(), TokenizerJson::is_true(model_, "fuse_unk"));
    }
  }

  void add_merges(Bpe& bpe, const Unspelt& unspelt) const {
    const JsonCursor merges = model_.at("merges");
    const std::size_t count = merges.array_size();
    for (std::size_t rank = 0; rank < count; ++rank) {
      const JsonCursor merge = merges.at(rank);
      const auto [left, right] = merge_parts(merge);
      const std::uint32_t a = merge_symbol(bpe, merge, left, unspelt), b = merge_symbol(bpe, merge, right, unspelt),
                          made = merge_symbol(bpe, merge, left + right, unspelt);
      // No word has a text outside the byte alphabet.
      if (a != Bpe::kNone && b != Bpe::kNone) bpe.set_merge(a, b, static_cast<std::uint32_t>(rank), made);
    }
  }

  /// Splits "a b" or ["a", "b"].
  static std::pair<std::string, std::string> merge_parts(const JsonCursor& merge) {
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

  /// Returns kNone for a token outside the byte alphabet.
  std::uint32_t merge_symbol(const Bpe& bpe, const JsonCursor& merge, const std::string& text,
                             const Unspelt& unspelt) const {
    const std::optional<std::string> bytes = spelling(text);
    const std::uint32_t symbol = bytes && !bytes->empty() ? bpe.find(*bytes) : Bpe::kNone;
    if (symbol == Bpe::kNone && !unspelt.contains(text))
      file_.malformed(merge, "token " + TokenizerJson::shown(text) + " of the merge is not in the vocabulary");
    return symbol;
  }

  const TokenizerJson& file_;
  JsonCursor model_, vocabulary_;
  bool is_byte_level_, falls_back_ = false;
};

/// Returns `score` as the tokenizers package reads it: the digits of its shortest decimal form are one integer, which
/// is then divided or multiplied by a power of ten, with up to two roundings. The roundings decide between two
/// segmentations with the same sum.
double score_of_two_roundings(double score) {
  std::array<char, 32> text;  // for example 1.25e-05
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), std::abs(score), std::chars_format::scientific);
  std::uint64_t digits = 0;
  int decimals = 0, exponent = 0;
  const char* at = text.data();
  for (bool is_fraction = false; *at != 'e'; ++at) {
    if (*at == '.') {
      is_fraction = true;
      continue;
    }
    digits = 10 * digits + static_cast<std::uint64_t>(*at - '0');
    decimals += is_fraction ? 1 : 0;
  }
  std::from_chars(at + (at[1] == '+' ? 2 : 1), end, exponent);
  exponent -= decimals;
  double power = std::numeric_limits<double>::infinity();  // beyond double: the score is negligible
  const std::string power_text = "1e" + std::to_string(std::abs(exponent));
  std::from_chars(power_text.data(), power_text.data() + power_text.size(), power);
  const auto whole = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? whole / power : whole * power, score);
}

class UnigramReader final : public JsonModelReader {
 public:
  /// Longer than any piece in use; the time per byte of text grows with this limit.
  static constexpr std::size_t kLongestPiece = 512;

  UnigramReader(const JsonCursor& model, const TokenizerJson& file) : model_(model) {
    const JsonCursor vocabulary = model.at("vocab");
    const std::size_t size = vocabulary.array_size();
    if (size == 0) file.malformed(vocabulary, "found no token");
    if (size > kMaxVocabulary) file.malformed(vocabulary, "found " + std::to_string(size) + " tokens");
    for (std::size_t id = 0; id < size; ++id) {
      const JsonCursor entry = vocabulary.at(id);
      if (entry.array_size() != 2) entry.fail("a token and its score");
      if (entry.at(0).string().empty() || entry.at(0).string().size() > kLongestPiece) {
        entry.at(0).fail("a token of 1 to " + std::to_string(kLongestPiece) + " bytes");
      }
      pieces_.push_back({entry.at(0).string(), score_of_two_roundings(entry.at(1).real())});
    }
  }

  std::uint64_t size() const override { return pieces_.size(); }
  std::size_t count() const override { return pieces_.size(); }

  void claim_tokens(TokenTable& tokens) const override {
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      tokens.ids_by_text.insert_or_assign(pieces_[id].text, static_cast<std::int32_t>(id));  // last of equals
      tokens.known[id] = true;
    }
  }

  std::unique_ptr<const WordModel> read(TokenTable& tokens, SplitSteps&) const override {
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      if (tokens.bytes[id].empty()) tokens.bytes[id] = bytes_of_marked_token(pieces_[id].text);
    }
    const bool falls_back = TokenizerJson::is_true(model_, "byte_fallback");
    if (!model_.has("unk_id"))
      return std::make_unique<Unigram>(pieces_, Unigram::Unknown{.where = model_.place() + "/unk_id"}, falls_back);
    const auto unknown = static_cast<std::int32_t>(model_.at("unk_id").unsigned_integer(pieces_.size() - 1));
    return std::make_unique<Unigram>(pieces_, Unigram::Unknown{.id = unknown}, falls_back);
  }

 private:
  JsonCursor model_;
  std::vector<Unigram::Piece> pieces_;
};

}  // namespace

std::unique_ptr<JsonModelReader> make_model_reader(const JsonCursor& model, const TokenizerJson& file,
                                                   bool is_byte_level) {
  // Files from before 2021 have no type.
  const std::string type = model.has("type") ? model.at("type").string() : "BPE";
  if (type == "BPE") return std::make_unique<BpeReader>(model, file, is_byte_level);
  if (type != "Unigram" || is_byte_level) {
    file.unsupported(model.at("type"), "model", type, is_byte_level ? "with ByteLevel, BPE" : "BPE, Unigram");
  }
  return std::make_unique<UnigramReader>(model, file);
}

}  // namespace kvs::inline tokenizer
