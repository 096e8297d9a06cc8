// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline tokenizer {

struct BpeOptions {
  enum class Unit { kByte, kCharacter };

  Unit unit = Unit::kByte;     // units that a word is cut into before merging
  bool ignore_merges = false;  // a word that is itself a token becomes that token without merging
  char whole_runs = 0;         // likewise a word of this byte only; 0: none
};

/// Byte-pair merging of one word at a time (Sennrich et al., ACL 2016, section 3.2), over bytes or characters. Symbols
/// below the vocabulary size are token ids. Symbols above it are texts that merges build and that are not tokens.
class Bpe final : public WordModel {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  using ByteSymbols = std::array<std::uint32_t, 256>;  // kNone: no symbol

  using ByteFallback = std::array<std::vector<std::uint32_t>, 256>;  // empty: no symbols

  explicit Bpe(std::size_t vocabulary_size, BpeOptions options = {});

  /// Sets the token of a unit without a symbol; with `fuse`, a run of such units gives one token. If no token is set,
  /// such units are dropped before merging.
  void set_unknown(std::uint32_t id, bool fuse) {
    unknown_ = id;
    fuse_unknown_ = fuse;
  }
  /// Makes a unit without a token an error of `where`, because the unknown token `token` is not in the vocabulary.
  void refuse_unknown(std::string where, std::string token) { unknown_error_ = {std::move(where), std::move(token)}; }
  void add_token(std::string bytes, std::uint32_t id);
  /// Returns the symbol of these bytes, or kNone.
  std::uint32_t find(std::string_view bytes) const noexcept;
  /// Like find(), but creates a symbol (not a token) if there is none.
  std::uint32_t find_or_make(std::string_view bytes);
  /// Creates a symbol for each byte that find() does not find; no merge can name these symbols.
  ByteSymbols make_hidden_bytes();
  /// Adds the merge left + right -> `merged`; lower ranks are merged earlier. Returns false, without a change, if the
  /// pair already has a rank.
  bool add_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);
  /// Like add_merge(), but a later rank replaces an earlier one.
  void set_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);
  /// Returns the last bytes of texts that some merge joins to a text beginning with `marker` (and that do not end with
  /// it). Cutting a word before a run of markers, except after such a byte, does not change the ids. Returns all bytes
  /// if no cut is safe.
  std::bitset<256> bytes_joined_before(std::string_view marker) const;
  /// Sets the symbols of each byte. A unit without a symbol becomes those of its bytes if each byte has some.
  void set_byte_fallback(ByteFallback symbols) { fallback_ = std::move(symbols); }
  /// Sets the tokens of bytes into which a symbol that is not a token is split after merging.
  void set_leftovers(const ByteSymbols& ids) { leftovers_ = ids; }

  /// The encoder appends the ids of a word. It merges the leftmost pair of the lowest rank until no pair has a rank.
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
  std::vector<std::string> untold_;  // bytes of the symbols that are not tokens
  ByteSymbols byte_symbols_, leftovers_;
  ByteFallback fallback_;
  PairTable merges_;
};

}  // namespace kvs::inline tokenizer
