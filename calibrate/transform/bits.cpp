// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/bits.h"

#include <numeric>
#include <queue>
#include <utility>

namespace kvs::inline calibrate {
namespace {

double gain(double variance, std::size_t bits) { return variance * (kTrellisError[bits] - kTrellisError[bits + 1]); }

/// A row to which bits are added.
class RowBits {
 public:
  explicit RowBits(const std::vector<double>& variances) : variances_(&variances), bits_(variances.size()) {
    for (std::size_t n = 0; n < variances.size(); ++n) push(n);
  }

  const std::vector<std::size_t>& bits() const noexcept { return bits_; }
  /// Adds the eight best bits, or as many as possible. @return the error that they remove
  double add_byte() {
    double sum = 0;
    for (std::size_t n = 0; n < 8 && !steps_.empty(); ++n) {
      const auto [gain, behind] = steps_.top();
      const std::size_t coefficient = bits_.size() - behind;
      steps_.pop();
      sum += gain;
      if (++bits_[coefficient] < kMaxBits) push(coefficient);
    }
    return sum;
  }

 private:
  /// On ties the first coefficient is used.
  void push(std::size_t n) { steps_.emplace(gain((*variances_)[n], bits_[n]), bits_.size() - n); }

  const std::vector<double>* variances_;
  std::vector<std::size_t> bits_;
  std::priority_queue<std::pair<double, std::size_t>> steps_;  // gain of the next bit, coefficients from here on
};

/// Some rows with their next byte, which may not be granted.
struct NextByte {
  explicit NextByte(const CodeRows& of) : tokens(of.tokens) {
    for (const std::vector<double>& variances : of.variances) rows.emplace_back(variances);
    advance();
  }

  std::size_t bytes() const noexcept { return rows.size() * tokens; }
  void advance() {
    bits.clear();
    double sum = 0;
    for (RowBits& row : rows) {
      bits.push_back(row.bits());
      sum += row.add_byte();
    }
    worth = sum / static_cast<double>(bytes());
  }
  bool is_full() const { return bits.front() == rows.front().bits(); }

  std::size_t tokens;
  std::vector<RowBits> rows;
  CodeBits bits;     // without the next byte
  double worth = 0;  // gain of the next byte per stored byte
};

}  // namespace

std::size_t code_bytes(std::span<const std::size_t> bits) noexcept {
  return (std::reduce(bits.begin(), bits.end()) + 7) / 8;
}

std::vector<CodeBits> allocate_bits(std::span<const CodeRows> all, std::size_t bytes) {
  std::vector<NextByte> next(all.begin(), all.end());
  std::priority_queue<std::pair<double, std::size_t>> order;  // gain, number of rows from these on: ties as above
  for (std::size_t n = 0; n < next.size(); ++n) order.emplace(next[n].worth, next.size() - n);
  for (std::size_t left = bytes; !order.empty();) {
    const std::size_t n = next.size() - order.top().second;
    order.pop();
    if (next[n].bytes() > left || next[n].is_full()) continue;
    left -= next[n].bytes();
    next[n].advance();
    order.emplace(next[n].worth, next.size() - n);
  }
  std::vector<CodeBits> bits;
  bits.reserve(next.size());
  for (NextByte& rows : next) bits.push_back(std::move(rows.bits));
  return bits;
}

}  // namespace kvs::inline calibrate
