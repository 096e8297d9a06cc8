#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/string_map.h"
#include "tokenizer/pair_table.h"
#include "tokenizer/word_model.h"

namespace kvs {

struct BpeOptions {
  enum class Unit { kByte, kCharacter };

  Unit unit = Unit::kByte;     // what a word is cut into before merging
  bool ignore_merges = false;  // a word that is itself a token becomes that token, whatever the merges say
};

/// Byte-pair merging of one word at a time (Sennrich et al., ACL 2016, section 3.2), over bytes or characters.
/// Symbols below the vocabulary size are token ids; symbols above it are texts that merges build but that are no token.
class Bpe final : public WordModel {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  using ByteSymbols = std::array<std::uint32_t, 256>;  // kNone where there is none

  using ByteFallback = std::array<std::vector<std::uint32_t>, 256>;  // empty where there is none

  explicit Bpe(std::size_t vocabulary_size, BpeOptions options = {});

  /// The token of a unit that has none; with `fuse` one for a run of them. Without it they are dropped before merging.
  void set_unknown(std::uint32_t id, bool fuse) {
    unknown_ = id;
    fuse_unknown_ = fuse;
  }
  /// A unit that has no token is an error of `where`: `token`, which was to stand for it, is none.
  void refuse_unknown(std::string where, std::string token) { unknown_error_ = {std::move(where), std::move(token)}; }
  void add_token(std::string bytes, std::uint32_t id);
  /// The symbol of these bytes, or kNone.
  std::uint32_t find(std::string_view bytes) const noexcept;
  /// As find, but makes a symbol that is no token if there is none.
  std::uint32_t find_or_make(std::string_view bytes);
  /// A symbol for each byte that find does not find, and that no merge can name.
  ByteSymbols make_hidden_bytes();
  /// left + right become `merged`; the lower the rank the earlier. Returns false, and changes nothing, if the pair has
  /// a rank.
  bool add_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);
  /// As add_merge, but a later rank replaces an earlier one.
  void set_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);
  /// The last bytes of texts that some merge joins to a text that begins with `marker` (and that do not end with it): a
  /// word cut before a run of markers, but not after such a byte, gives the same ids. All bytes where that is not so.
  std::bitset<256> bytes_joined_before(std::string_view marker) const;
  /// A unit without a symbol becomes those of its bytes, if each of them has some.
  void set_byte_fallback(ByteFallback symbols) { fallback_ = std::move(symbols); }
  /// A symbol that is no token becomes, after merging, these tokens of its bytes.
  void set_leftovers(const ByteSymbols& ids) { leftovers_ = ids; }

  /// Appends the ids of `word`: from left to right among the pairs of the lowest rank, until no pair has one.
  /// Cost O(n log n).
  std::unique_ptr<Encoder> make_encoder() const override;

 private:
  struct Scratch;
  class WordEncoder;

  void encode(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& ids) const;
  void cut(std::string_view word, Scratch& scratch) const;
  std::size_t unit_length(std::string_view word) const noexcept;
  std::uint32_t symbol_of_unit(std::string_view unit) const noexcept;
  bool fall_back(std::string_view unit, Scratch& scratch) const;
  void offer(std::size_t left, Scratch& scratch) const;
  void merge_all(Scratch& scratch) const;
  void append(std::uint32_t symbol, std::vector<std::int32_t>& ids) const;

  std::size_t vocabulary_size_;
  BpeOptions options_;
  std::uint32_t unknown_ = kNone;
  bool fuse_unknown_ = false;
  std::optional<std::pair<std::string, std::string>> unknown_error_;
  StringMap<std::uint32_t> symbols_;
  std::vector<std::string> untold_;  // bytes of the symbols that are no token
  ByteSymbols byte_symbols_, leftovers_;
  ByteFallback fallback_;
  PairTable merges_;
};

}  // namespace kvs
