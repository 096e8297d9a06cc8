// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace kvs::inline tokenizer {
namespace {

constexpr double kUnknownPenalty = 10;

/// The best path that ends at a byte.
struct Ending {
  double score = 0;
  std::size_t start = kUnreached;  // of its last piece
  bool is_unknown = false;         // its last piece is a character without a token

  static constexpr std::size_t kUnreached = std::numeric_limits<std::size_t>::max();

  bool improve(double candidate, std::size_t from, bool unknown) {
    if (start != kUnreached && candidate <= score) return false;
    *this = {candidate, from, unknown};
    return true;
  }
};

}  // namespace

class Unigram::WordEncoder final : public WordModel::Encoder {
 public:
  explicit WordEncoder(const Unigram& model) : model_(model) {}

  void encode(std::string_view word, std::vector<std::int32_t>& ids) override {
    find_best_endings(word);
    cuts_.clear();  // the ends of the pieces, last first
    for (std::size_t end = word.size(); end > 0;) {
      const bool is_unknown = endings_[end].is_unknown;
      cuts_.push_back(end);
      do end = endings_[end].start;
      while (is_unknown && end > 0 && endings_[end].is_unknown);
    }
    std::size_t begin = 0;
    for (auto end = cuts_.rbegin(); end != cuts_.rend(); begin = *end++) {
      model_.append(word.substr(begin, *end - begin), ids);
    }
  }

 private:
  void find_best_endings(std::string_view word) {
    endings_.assign(word.size() + 1, {});
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t character = std::max<std::size_t>(utf8_length(word.substr(at)), 1);
      bool has_character = false;
      std::uint32_t node = 0;
      for (std::size_t end = at; end < word.size();) {
        node = model_.step(node, word[end++]);
        if (node == kNoNode) break;
        const std::int32_t id = model_.id_of_node_[node];
        if (id == kNoId) continue;
        const double score = model_.scores_[static_cast<std::size_t>(id)];
        endings_[end].improve(endings_[at].score + score, at, id == model_.unknown_.id);
        has_character = has_character || end - at == character;
      }
      if (!has_character && endings_[at + character].improve(endings_[at].score + model_.unknown_score_, at, true))
        model_.check_unknown(word.substr(at, character));
      at += character;
    }
  }

  const Unigram& model_;
  std::vector<Ending> endings_;
  std::vector<std::size_t> cuts_;
};

Unigram::Unigram(const std::vector<Piece>& pieces, Unknown unknown, bool byte_fallback) : unknown_(std::move(unknown)) {
  double least = std::numeric_limits<double>::max();
  for (const Piece& piece : pieces) {
    const auto id = static_cast<std::int32_t>(scores_.size());
    std::uint32_t node = 0;
    for (const char c : piece.text) {
      const std::uint64_t edge = (std::uint64_t{node} << 8) | static_cast<unsigned char>(c);
      const auto [next, is_new] = edges_.try_emplace(edge, static_cast<std::uint32_t>(id_of_node_.size()));
      if (is_new) id_of_node_.push_back(kNoId);
      node = next->second;
    }
    id_of_node_[node] = id;
    ids_.insert_or_assign(piece.text, id);
    scores_.push_back(piece.score);
    least = std::min(least, piece.score);
  }
  unknown_score_ = least - kUnknownPenalty;
  if (!byte_fallback) return;
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids_.find(name_of_byte_token(static_cast<unsigned char>(byte)));
    byte_ids_.push_back(found == ids_.end() ? kNoId : found->second);
  }
}

std::unique_ptr<WordModel::Encoder> Unigram::make_encoder() const { return std::make_unique<WordEncoder>(*this); }

std::uint32_t Unigram::step(std::uint32_t node, char byte) const {
  const auto edge = edges_.find((std::uint64_t{node} << 8) | static_cast<unsigned char>(byte));
  return edge == edges_.end() ? kNoNode : edge->second;
}

void Unigram::append(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (const auto found = ids_.find(piece); found != ids_.end()) {
    ids.push_back(found->second);
    return;
  }
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (!byte_ids_.empty() && std::all_of(piece.begin(), piece.end(), [&](char c) { return id_of(c) != kNoId; })) {
    for (const char byte : piece) ids.push_back(id_of(byte));
  } else {
    ids.push_back(unknown_.id);
  }
}

void Unigram::check_unknown(std::string_view character) const {
  if (unknown_.id == kNoId)
    throw Error(
        ErrorCode::kInput, unknown_.where,
        "found none, expected the id of a token: a text has \"" + printable(character, 20) + "\", which has none");
}

}  // namespace kvs::inline tokenizer
