// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/text_range.h"

namespace kvs::inline tokenizer {

/// A token that is searched for in the text before the model runs. It is never split.
struct AddedToken {
  std::string text;  // not empty
  std::int32_t id = 0;
  bool single_word = false;  // matches only if no word character is adjacent
  bool lstrip = false;       // also takes the white space to its left
  bool rstrip = false;
  bool is_split = false;    // only takes part in the search: the model splits its text as plain text
  bool is_control = false;  // a token of a template: plain text in what users write
};

/// Cuts texts at added tokens. Thread-safe after construction.
class AddedTokens {
 public:
  /// A part of the text: a token, or plain text (id < 0).
  struct Piece {
    std::string_view text;
    std::int32_t id = -1;
  };
  using Sink = std::function<void(const Piece&)>;

  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const noexcept { return tokens_.empty(); }

  /// Splits as Hugging Face `tokenizers` does: from left to right, the longest token at each position, then strip
  /// flags.
  /// @param literal  what users wrote, ascending: control tokens that overlap it are plain text
  void split_leftmost(std::string_view text, std::span<const TextRange> literal, const Sink& sink) const;
  /// Splits as llama.cpp does: the longest token at any position, then the next shorter one in the remaining text;
  /// tokens of equal length in the order of ids. Only the flag rstrip is used, for ASCII white space.
  void split_longest_first(std::string_view text, std::span<const TextRange> literal, const Sink& sink) const;

 private:
  struct Found {
    std::size_t begin, token;  // token: index into tokens_
  };
  template <class Visit>
  void match_at(std::string_view text, std::size_t at, Visit visit) const;
  std::vector<Found> find_all(std::string_view text, std::span<const TextRange> literal) const;

  std::vector<AddedToken> tokens_;  // longest first, then by id
  // Trie of bytes: (node << 8 | byte) -> node; node 0 is the root.
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::vector<std::int64_t> token_of_node_ = {-1};
  std::vector<bool> first_bytes_ = std::vector<bool>(256, false);
};

}  // namespace kvs::inline tokenizer
