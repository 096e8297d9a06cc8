#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvs {

/// A token that is found in the text before anything else and is never split.
struct AddedToken {
  std::string text;  // not empty
  std::int32_t id = 0;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;
  bool is_split = false;  // takes its place in the search alone: the model splits it as plain text
};

/// Cuts texts at added tokens. Thread-safe after construction.
class AddedTokens {
 public:
  /// A stretch of the text: a token, or plain text (id < 0).
  struct Piece {
    std::string_view text;
    std::int32_t id = -1;
  };
  using Sink = std::function<void(const Piece&)>;

  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const noexcept { return tokens_.empty(); }

  /// The way of Hugging Face `tokenizers`: from left to right, at each place the longest token, then its strip rules.
  void split_leftmost(std::string_view text, const Sink& sink) const;
  /// The way of llama.cpp: the longest token wherever it stands, then the next shorter one in what is left; equal
  /// lengths in the order of ids. Of the flags only rstrip counts here, for ASCII white space.
  void split_longest_first(std::string_view text, const Sink& sink) const;

 private:
  struct Found {
    std::size_t begin, token;  // token: index into tokens_
  };
  template <class Visit>
  void match_at(std::string_view text, std::size_t at, Visit visit) const;
  std::vector<Found> find_all(std::string_view text) const;

  std::vector<AddedToken> tokens_;  // longest first, then by id
  // A trie of bytes: (node << 8 | byte) -> node; node 0 is the root.
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::vector<std::int64_t> token_of_node_ = {-1};
  std::vector<bool> first_bytes_ = std::vector<bool>(256, false);
};

}  // namespace kvs
