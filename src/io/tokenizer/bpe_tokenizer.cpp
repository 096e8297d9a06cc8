#include "io/tokenizer/bpe_tokenizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "core/error.h"
#include "core/utf8.h"

namespace kvs {
namespace {

/// True if no character of `text` can change or be changed by NFC: all below U+0300 (UTF-8 lead byte below 0xCC).
bool is_plainly_nfc(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0xCC) return false;
  }
  return true;
}

/// One call of encode: what is shared from word to word.
class Encoding {
 public:
  Encoding(const BpeTokenizerParts& parts, std::vector<std::int32_t>& ids) : parts_(parts), ids_(ids) {
    sinks_.resize(parts.steps.size() + 1);
    sinks_.back() = [this](std::string_view word) { add_word(word); };
    for (std::size_t step = parts.steps.size(); step-- > 0;) {
      sinks_[step] = [this, step](std::string_view text) { parts_.steps[step]->split(text, sinks_[step + 1]); };
    }
  }
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  void run(std::string_view text) {
    const AddedTokens::Sink sink = [this](const AddedTokens::Piece& piece) {
      piece.id >= 0 ? ids_.push_back(piece.id) : add_text(piece.text);
    };
    if (parts_.added_rule == BpeTokenizerParts::AddedRule::kLongestFirst) {
      parts_.added.split_longest_first(text, sink);
    } else {
      parts_.added.split_leftmost(text, sink);
    }
  }

 private:
  void add_text(std::string_view text) {
    if (parts_.nfc && !is_plainly_nfc(text)) {
      add_normalized(to_nfc(text));
    } else {
      add_normalized(text);
    }
  }

  void add_normalized(std::string_view text) {
    parts_.added_normalized.split_leftmost(text, [this](const AddedTokens::Piece& piece) {
      piece.id >= 0 ? ids_.push_back(piece.id) : sinks_.front()(piece.text);
    });
  }

  /// Natural text repeats its words: four of five come from here and need no merging.
  void add_word(std::string_view word) {
    constexpr std::size_t kMaxWord = 32, kMaxWords = 1UL << 16;
    if (word.size() > kMaxWord) {
      parts_.bpe.encode(word, scratch_, ids_);
      return;
    }
    const auto known = words_.find(word);
    if (known != words_.end()) {
      ids_.insert(ids_.end(), known->second.begin(), known->second.end());
      return;
    }
    const auto first = static_cast<std::ptrdiff_t>(ids_.size());
    parts_.bpe.encode(word, scratch_, ids_);
    if (words_.size() < kMaxWords) {
      words_.emplace(std::string(word), std::vector<std::int32_t>(ids_.begin() + first, ids_.end()));
    }
  }

  const BpeTokenizerParts& parts_;
  std::vector<std::int32_t>& ids_;
  std::vector<PieceSink> sinks_;
  Bpe::Scratch scratch_;
  StringMap<std::vector<std::int32_t>> words_;
};

}  // namespace

std::string to_nfc(std::string_view text) {
  utf8proc_uint8_t* normalized = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &normalized, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(normalized, &std::free);
  if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (length < 0) throw Error(ErrorCode::kInternal, "NFC", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(normalized), static_cast<std::size_t>(length)};
}

std::vector<std::int32_t> BpeTokenizer::encode(std::string_view text) const {
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    throw Error(ErrorCode::kInternal, "tokenizer", "found invalid UTF-8 at byte " + std::to_string(bad));
  }
  std::vector<std::int32_t> ids;
  Encoding(parts_, ids).run(text);
  return ids;
}

std::string BpeTokenizer::decode(const std::vector<std::int32_t>& ids) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    const auto index = static_cast<std::size_t>(id);
    if (id < 0 || index >= parts_.token_bytes.size() || !parts_.known_ids[index]) {
      throw Error(
          ErrorCode::kInternal, "tokenizer",
          "found id " + std::to_string(id) + ", expected one of a vocabulary of " + std::to_string(vocabulary_size()));
    }
    bytes += parts_.token_bytes[index];
  }
  return bytes;
}

std::int32_t BpeTokenizer::find(std::string_view token) const noexcept {
  const auto found = parts_.ids_by_text.find(token);
  return found == parts_.ids_by_text.end() ? -1 : found->second;
}

}  // namespace kvs
