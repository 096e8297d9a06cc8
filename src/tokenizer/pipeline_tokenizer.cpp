// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pipeline_tokenizer.h"

#include "core/error.h"
#include "core/utf8.h"

namespace kvs::inline tokenizer {
namespace {

/// State of one encode() call, shared by all its words.
class Encoding {
 public:
  Encoding(const TokenizerParts& parts, std::vector<std::int32_t>& ids)
      : parts_(parts), ids_(ids), encoder_(parts.model->make_encoder()) {
    sinks_.resize(parts.steps.size() + 1);
    sinks_.back() = [this](std::string_view word, bool) { add_word(word); };
    for (std::size_t step = parts.steps.size(); step-- > 0;) {
      sinks_[step] = [this, step](std::string_view text, bool first) {
        parts_.steps[step]->split(text, first, sinks_[step + 1]);
      };
    }
  }
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  void run(std::string_view text, std::span<const TextRange> literal) {
    const AddedTokens::Sink sink = [&](const AddedTokens::Piece& piece) {
      piece.id >= 0 ? ids_.push_back(piece.id) : add_text(piece.text, piece.text.data() == text.data());
    };
    if (parts_.added_rule == TokenizerParts::AddedRule::kLongestFirst) {
      parts_.added.split_longest_first(text, literal, sink);
    } else {
      parts_.added.split_leftmost(text, literal, sink);
    }
  }

 private:
  void add_text(std::string_view text, bool first) {
    std::string storage;
    text = normalize(parts_.normalizers, text, storage);
    parts_.added_normalized.split_leftmost(text, {}, [&](const AddedTokens::Piece& piece) {
      piece.id >= 0 ? ids_.push_back(piece.id) : sinks_.front()(piece.text, first && piece.text.data() == text.data());
    });
  }

  /// Natural text repeats its words: four of five words are found in this cache and need no merging.
  void add_word(std::string_view word) {
    constexpr std::size_t kMaxWord = 32, kMaxWords = 1UL << 16;
    if (word.size() > kMaxWord) {
      encoder_->encode(word, ids_);
      return;
    }
    const auto known = words_.find(word);
    if (known != words_.end()) {
      ids_.insert(ids_.end(), known->second.begin(), known->second.end());
      return;
    }
    const auto first = static_cast<std::ptrdiff_t>(ids_.size());
    encoder_->encode(word, ids_);
    if (words_.size() < kMaxWords) {
      words_.emplace(std::string(word), std::vector<std::int32_t>(ids_.begin() + first, ids_.end()));
    }
  }

  const TokenizerParts& parts_;
  std::vector<std::int32_t>& ids_;
  std::unique_ptr<WordModel::Encoder> encoder_;
  std::vector<PieceSink> sinks_;
  StringMap<std::vector<std::int32_t>> words_;
};

}  // namespace

std::vector<std::int32_t> PipelineTokenizer::encode_turns(std::string_view text,
                                                          std::span<const TextRange> literal) const {
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    throw Error(ErrorCode::kInternal, "tokenizer", "found invalid UTF-8 at byte " + std::to_string(bad));
  }
  std::vector<std::int32_t> ids;
  Encoding(parts_, ids).run(text, literal);
  return ids;
}

std::string TokenTable::decode(const std::vector<std::int32_t>& ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    const auto index = static_cast<std::size_t>(id);
    if (id >= 0 && index < bytes.size() && known[index]) text += bytes[index];
  }
  return text;
}

std::int32_t TokenTable::find(std::string_view text) const noexcept {
  const auto found = ids_by_text.find(text);
  return found == ids_by_text.end() ? -1 : found->second;
}

}  // namespace kvs::inline tokenizer
