#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvs {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

/// Byte-pair merging of one word at a time (Sennrich et al., ACL 2016, section 3.2), over bytes.
/// Symbols below the vocabulary size are token ids; symbols above it are texts that merges build but that are no token.
class Bpe {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;

  /// @param ignore_merges  a word that is itself a token becomes that token, whatever the merges say
  Bpe(std::size_t vocabulary_size, bool ignore_merges);

  void add_token(std::string bytes, std::uint32_t id);
  /// The symbol of these bytes, or kNone.
  std::uint32_t find(std::string_view bytes) const noexcept;
  /// As find, but makes a symbol that is no token if there is none.
  std::uint32_t find_or_make(std::string_view bytes);
  /// left + right become `merged`; the lower the rank the earlier. Returns false, and changes nothing, if the pair has
  /// a rank.
  bool add_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);
  /// As add_merge, but a later rank replaces an earlier one.
  void set_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);

  /// Working memory of encode, to be reused from word to word by one thread.
  struct Scratch;

  /// Appends the ids of `word`. Bytes without a symbol are dropped before merging; a symbol that is no token becomes
  /// the tokens of its printable ASCII bytes and loses the others, as llama.cpp does. Cost O(n log n).
  void encode(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& ids) const;

 private:
  struct Merge {
    std::uint32_t rank, symbol;
  };
  const Merge* merge_of(std::uint32_t left, std::uint32_t right) const;
  void offer(std::size_t left, Scratch& scratch) const;
  void merge_all(Scratch& scratch) const;
  void append(std::uint32_t symbol, std::vector<std::int32_t>& ids) const;

  struct PairHash {
    std::size_t operator()(std::uint64_t pair) const noexcept {
      pair *= 0x9E3779B97F4A7C15ULL;  // Fibonacci hashing; std::hash leaves consecutive ids in consecutive buckets
      return static_cast<std::size_t>(pair ^ (pair >> 32));
    }
  };

  std::size_t vocabulary_size_;
  bool ignore_merges_;
  StringMap<std::uint32_t> symbols_;
  std::vector<std::string> untold_;  // bytes of the symbols that are no token
  std::array<std::uint32_t, 256> byte_symbols_;
  std::unordered_map<std::uint64_t, Merge, PairHash> merges_;
};

struct Bpe::Scratch {
  struct Symbol {
    std::uint32_t symbol;
    std::int64_t previous, next;  // -1 at the ends
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;  // of the left symbol
    std::uint32_t left, right, merged;
  };
  std::vector<Symbol> chain;
  std::vector<Candidate> heap;
};

}  // namespace kvs
