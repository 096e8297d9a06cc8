#include "io/tokenizer/bpe.h"

#include <algorithm>
#include <utility>

namespace kvs {
namespace {

std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) { return (std::uint64_t{left} << 32) | right; }

/// Heap order: the lowest rank on top, and of equal ranks the leftmost.
bool comes_later(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

Bpe::Bpe(std::size_t vocabulary_size, bool ignore_merges)
    : vocabulary_size_(vocabulary_size), ignore_merges_(ignore_merges) {
  byte_symbols_.fill(kNone);
  symbols_.reserve(vocabulary_size);
}

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

bool Bpe::add_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged) {
  return merges_.emplace(pair_key(left, right), Merge{rank, merged}).second;
}

void Bpe::set_merge(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged) {
  merges_.insert_or_assign(pair_key(left, right), Merge{rank, merged});
}

const Bpe::Merge* Bpe::merge_of(std::uint32_t left, std::uint32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::offer(std::size_t left, Scratch& scratch) const {
  const Scratch::Symbol& a = scratch.chain[left];
  if (a.next < 0) return;
  const std::uint32_t right = scratch.chain[static_cast<std::size_t>(a.next)].symbol;
  if (const Merge* merge = merge_of(a.symbol, right)) {
    scratch.heap.push_back({merge->rank, left, a.symbol, right, merge->symbol});
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), comes_later);
  }
}

void Bpe::merge_all(Scratch& scratch) const {
  auto& [chain, heap] = scratch;
  for (std::size_t at = 0; at + 1 < chain.size(); ++at) offer(at, scratch);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Scratch::Candidate best = heap.back();
    heap.pop_back();
    Scratch::Symbol& left = chain[best.at];
    // A candidate is stale once either side was merged with something else; an absorbed symbol is kNone.
    if (left.symbol != best.left || left.next < 0) continue;
    Scratch::Symbol& right = chain[static_cast<std::size_t>(left.next)];
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
    const std::uint32_t single = byte_symbols_[static_cast<unsigned char>(byte)];
    if (byte >= 0x21 && byte <= 0x7E && single < vocabulary_size_) ids.push_back(static_cast<std::int32_t>(single));
  }
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  if (ignore_merges_) {
    const std::uint32_t whole = find(word);
    if (whole < vocabulary_size_) {
      ids.push_back(static_cast<std::int32_t>(whole));
      return;
    }
  }
  scratch.chain.clear();
  scratch.heap.clear();
  for (const char byte : word) {
    const std::uint32_t symbol = byte_symbols_[static_cast<unsigned char>(byte)];
    if (symbol == kNone) continue;
    const auto at = static_cast<std::int64_t>(scratch.chain.size());
    scratch.chain.push_back({symbol, at - 1, at + 1});
  }
  if (scratch.chain.empty()) return;
  scratch.chain.back().next = -1;
  merge_all(scratch);
  for (std::int64_t at = 0; at >= 0; at = scratch.chain[static_cast<std::size_t>(at)].next) {
    append(scratch.chain[static_cast<std::size_t>(at)].symbol, ids);
  }
}

}  // namespace kvs
