// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace kvs::inline tokenizer {
namespace {

struct Symbol {
  std::uint32_t symbol;
  std::int64_t previous, next;  // -1 at the ends
};

struct Candidate {
  std::uint32_t rank;
  std::size_t at;  // index of the left symbol
  std::uint32_t left, right, merged;
};

/// Heap order: the lowest rank is on top; among equal ranks, the leftmost.
bool comes_later(const Candidate& a, const Candidate& b) { return a.rank != b.rank ? a.rank > b.rank : a.at > b.at; }

}  // namespace

struct Bpe::Scratch {
  std::vector<Symbol> chain;
  std::vector<Candidate> heap;

  void push(std::uint32_t symbol) {
    const auto at = static_cast<std::int64_t>(chain.size());
    chain.push_back({symbol, at - 1, at + 1});
  }
};

class Bpe::WordEncoder final : public WordModel::Encoder {
 public:
  explicit WordEncoder(const Bpe& bpe) : bpe_(bpe) {}
  void encode(std::string_view word, std::vector<std::int32_t>& ids) override { bpe_.encode(word, scratch_, ids); }

 private:
  const Bpe& bpe_;
  Scratch scratch_;
};

Bpe::Bpe(std::size_t vocabulary_size, BpeOptions options) : vocabulary_size_(vocabulary_size), options_(options) {
  byte_symbols_.fill(kNone);
  leftovers_.fill(kNone);
  symbols_.reserve(vocabulary_size);
}

std::unique_ptr<WordModel::Encoder> Bpe::make_encoder() const { return std::make_unique<WordEncoder>(*this); }

void Bpe::add_token(std::string bytes, std::uint32_t id) {
  if (bytes.size() == 1) byte_symbols_[static_cast<unsigned char>(bytes[0])] = id;
  symbols_.emplace(std::move(bytes), id);
}

std::uint32_t Bpe::find(std::string_view bytes) const noexcept {
  const auto found = symbols_.find(bytes);
  return found == symbols_.end() ? kNone : found->second;
}

std::uint32_t Bpe::find_or_make(std::string_view bytes) {
  if (const std::uint32_t known = find(bytes); known != kNone) return known;
  const auto symbol = static_cast<std::uint32_t>(vocabulary_size_ + untold_.size());
  untold_.emplace_back(bytes);
  add_token(std::string(bytes), symbol);
  return symbol;
}

Bpe::ByteSymbols Bpe::make_hidden_bytes() {
  ByteSymbols symbols;
  for (std::size_t byte = 0; byte < symbols.size(); ++byte) {
    symbols[byte] = static_cast<std::uint32_t>(vocabulary_size_ + untold_.size());
    untold_.emplace_back(1, static_cast<char>(byte));
  }
  return symbols;
}

bool Bpe::add_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged) {
  const auto [merge, is_new] = merges_.insert(left, right);
  if (is_new) *merge = {rank, merged};
  return is_new;
}

void Bpe::set_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged) {
  *merges_.insert(left, right).first = {rank, merged};
}

std::bitset<256> Bpe::bytes_joined_before(std::string_view marker) const {
  std::bitset<256> joined;
  if (options_.ignore_merges || symbol_of_unit(marker) == kNone) return joined.set();
  constexpr int kMarker = -1;
  std::vector<bool> begins(vocabulary_size_ + untold_.size());
  std::vector<int> last(begins.size(), kMarker);  // byte
  for (const auto& [text, symbol] : symbols_) {
    begins[symbol] = text.starts_with(marker);
    if (!text.empty() && !text.ends_with(marker)) last[symbol] = static_cast<unsigned char>(text.back());
  }
  merges_.for_each([&](std::uint32_t left, std::uint32_t right) {
    if (begins[right] && last[left] != kMarker) joined.set(static_cast<std::size_t>(last[left]));
  });
  return joined;
}

std::size_t Bpe::unit_length(std::string_view word) const noexcept {
  return options_.unit == BpeOptions::Unit::kByte ? 1 : std::max<std::size_t>(utf8_length(word), 1);
}

std::uint32_t Bpe::symbol_of_unit(std::string_view unit) const noexcept {
  return unit.size() == 1 ? byte_symbols_[static_cast<unsigned char>(unit[0])] : find(unit);
}

bool Bpe::fall_back(std::string_view unit, Scratch& scratch) const {
  const auto symbols_of = [&](char byte) -> const auto& { return fallback_[static_cast<unsigned char>(byte)]; };
  if (std::any_of(unit.begin(), unit.end(), [&](char byte) { return symbols_of(byte).empty(); })) return false;
  for (const char byte : unit)
    for (const std::uint32_t symbol : symbols_of(byte)) scratch.push(symbol);
  return true;
}

/// Builds the chain of symbols before any merge. The token of an unknown unit is added only before the next known unit
/// or at the end of the word. Symbols of byte fallback are therefore added before it, as in `tokenizers`.
void Bpe::cut(std::string_view word, Scratch& scratch) const {
  bool pending = false;
  const auto put_down = [&] {
    if (pending) scratch.push(unknown_);
    pending = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view unit = word.substr(at, unit_length(word.substr(at)));
    at += unit.size();
    const std::uint32_t symbol = symbol_of_unit(unit);
    if (symbol != kNone) {
      put_down();
      scratch.push(symbol);
    } else if (fall_back(unit, scratch)) {
      continue;
    } else if (unknown_error_) {
      throw Error(ErrorCode::kInput, unknown_error_->first,
                  "found " + unknown_error_->second + ", which is no token, expected one: a text has " + '"' +
                      printable(unit, 20) + "\", which has none");
    } else if (unknown_ != kNone) {
      if (!fuse_unknown_) put_down();
      pending = true;
    }
  }
  put_down();
  if (!scratch.chain.empty()) scratch.chain.back().next = -1;
}

void Bpe::offer(std::size_t left, Scratch& scratch) const {
  const Symbol& a = scratch.chain[left];
  if (a.next < 0) return;
  const std::uint32_t right = scratch.chain[static_cast<std::size_t>(a.next)].symbol;
  if (const Merge* merge = merges_.find(a.symbol, right)) {
    scratch.heap.push_back({merge->rank, left, a.symbol, right, merge->symbol});
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), comes_later);
  }
}

void Bpe::merge_all(Scratch& scratch) const {
  auto& [chain, heap] = scratch;
  for (std::size_t at = 0; at + 1 < chain.size(); ++at) offer(at, scratch);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol& left = chain[best.at];
    // A candidate is stale if either side has been merged with another symbol. An absorbed symbol is kNone.
    if (left.symbol != best.left || left.next < 0) continue;
    Symbol& right = chain[static_cast<std::size_t>(left.next)];
    if (right.symbol != best.right) continue;
    left.symbol = best.merged;
    right.symbol = kNone;
    left.next = right.next;
    if (left.next >= 0) chain[static_cast<std::size_t>(left.next)].previous = static_cast<std::int64_t>(best.at);
    offer(best.at, scratch);
    if (left.previous >= 0) offer(static_cast<std::size_t>(left.previous), scratch);
  }
}

void Bpe::append(std::uint32_t symbol, std::vector<std::int32_t>& ids) const {
  if (symbol < vocabulary_size_) {
    ids.push_back(static_cast<std::int32_t>(symbol));
    return;
  }
  for (const char byte : untold_[symbol - vocabulary_size_]) {
    const std::uint32_t id = leftovers_[static_cast<unsigned char>(byte)];
    if (id != kNone) ids.push_back(static_cast<std::int32_t>(id));
  }
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  const bool run = options_.whole_runs != 0 && word.find_first_not_of(options_.whole_runs) == std::string_view::npos;
  if (options_.ignore_merges || run) {
    const std::uint32_t whole = find(word);
    if (whole < vocabulary_size_) {
      ids.push_back(static_cast<std::int32_t>(whole));
      return;
    }
  }
  scratch.chain.clear();
  scratch.heap.clear();
  cut(word, scratch);
  if (scratch.chain.empty()) return;
  merge_all(scratch);
  for (std::int64_t at = 0; at >= 0; at = scratch.chain[static_cast<std::size_t>(at)].next) {
    append(scratch.chain[static_cast<std::size_t>(at)].symbol, ids);
  }
}

}  // namespace kvs::inline tokenizer
