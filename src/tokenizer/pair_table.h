// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kvs::inline tokenizer {

/// The result of merging a pair of symbols.
struct Merge {
  std::uint32_t rank, symbol;
};

/// Merges by pair: an open-addressing hash table. A lookup touches one or two cache lines.
class PairTable {
 public:
  PairTable() : slots_(kMinSlots) {}

  const Merge* find(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = start_of(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].key == key) return &slots_[at].merge;
      if (slots_[at].key == kEmpty) return nullptr;
    }
  }

  /// Returns the merge of this pair, and true if it is new and must be filled in. No symbol may be 2^32 - 1.
  std::pair<Merge*, bool> insert(std::uint32_t left, std::uint32_t right) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = start_of(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].key == key) return {&slots_[at].merge, false};
      if (slots_[at].key != kEmpty) continue;
      slots_[at].key = key;
      ++size_;
      return {&slots_[at].merge, true};
    }
  }

  /// Calls visit(left, right) for every pair in the table, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key != kEmpty) visit(static_cast<std::uint32_t>(slot.key >> 32), static_cast<std::uint32_t>(slot.key));
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr std::size_t kMinSlots = 64;  // a power of two, like every later size
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge{0, 0};
  };

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) noexcept {
    return (std::uint64_t{left} << 32) | right;
  }
  std::size_t start_of(std::uint64_t key) const noexcept {
    key *= 0x9E3779B97F4A7C15ULL;  // Fibonacci hashing: spreads consecutive ids
    return static_cast<std::size_t>(key ^ (key >> 32)) & (slots_.size() - 1);
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    size_ = 0;
    for (const Slot& slot : old) {
      if (slot.key == kEmpty) continue;
      *insert(static_cast<std::uint32_t>(slot.key >> 32), static_cast<std::uint32_t>(slot.key)).first = slot.merge;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace kvs::inline tokenizer
