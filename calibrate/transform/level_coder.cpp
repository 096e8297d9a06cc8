// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/level_coder.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::uint32_t kLeastState = 1U << 16, kWordBits = 16;

/// A symbol's interval of probabilities.
struct Interval {
  std::uint32_t start, size;
};
constexpr Interval bit_interval(bool bit) { return {bit ? kFrequencySum / 2 : 0, kFrequencySum / 2}; }

/// Appends the intervals of a coefficient.
void add_level(std::span<const std::uint16_t> frequencies, std::int32_t magnitude, std::vector<Interval>& intervals) {
  const std::uint32_t level = level_of(std::abs(magnitude)), held = std::min<std::uint32_t>(level, kLevels - 1);
  std::uint32_t start = 0;
  for (std::uint32_t n = 0; n < held; ++n) start += frequencies[n];
  intervals.push_back({start, frequencies[held]});
  if (level == 0) return;
  intervals.push_back(bit_interval(magnitude < 0));
  if (held < kLevels - 1) return;
  const std::uint32_t excess = level - held + 1;
  const int width = std::bit_width(excess);
  for (int n = 1; n < width; ++n) intervals.push_back(bit_interval(true));
  intervals.push_back(bit_interval(false));
  for (int n = width - 1; n-- > 0;) intervals.push_back(bit_interval((excess >> n & 1) == 1));
}

class Reader {
 public:
  explicit Reader(std::span<const std::uint16_t> words) : words_(words) {
    state_ = next();
    state_ = state_ << kWordBits | next();
  }

  std::uint32_t slot() const noexcept { return state_ & (kFrequencySum - 1); }
  void take(const Interval& interval) {
    state_ = interval.size * (state_ >> kProbabilityBits) + slot() - interval.start;
    if (state_ < kLeastState) state_ = state_ << kWordBits | next();
  }
  bool bit() {
    const bool set = slot() >= kFrequencySum / 2;
    take(bit_interval(set));
    return set;
  }
  std::uint32_t level(std::span<const std::uint16_t> frequencies) {
    std::uint32_t start = 0, n = 0;
    while (n + 1 < kLevels && slot() >= start + frequencies[n]) start += frequencies[n++];
    take({start, frequencies[n]});
    return n;
  }
  std::uint32_t excess() {
    constexpr int kMost = std::bit_width(static_cast<std::uint32_t>(kMaxMagnitude));
    int width = 1;
    while (bit())
      if (++width > kMost) fail();
    std::uint32_t value = 1;
    for (int n = 1; n < width; ++n) value = value << 1 | (bit() ? 1U : 0U);
    return value - 1;
  }
  void check_end() const {
    if (at_ != words_.size() || state_ != kLeastState) fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::kData, "block of codes", "found a stream that does not decode, expected one of this model");
  }
  std::uint32_t next() {
    if (at_ == words_.size()) fail();
    return words_[at_++];
  }

  std::span<const std::uint16_t> words_;
  std::size_t at_ = 0;
  std::uint32_t state_ = 0;
};

}  // namespace

LevelBlock encode_levels(const EntropyModel& model, std::span<const std::int32_t> magnitudes,
                         std::span<const std::uint8_t> scales) {
  std::vector<Interval> intervals;
  for_each_level(model, magnitudes, scales, [&](std::size_t index, std::size_t context, std::uint32_t) {
    add_level(std::span(model.frequencies).subspan(context * kLevels, kLevels), magnitudes[index], intervals);
  });
  LevelBlock block{{}, scales.empty() ? 0 : magnitudes.size() / scales.size()};
  std::uint32_t state = kLeastState;
  for (std::size_t n = intervals.size(); n-- > 0;) {
    const auto [start, size] = intervals[n];
    if (state >= static_cast<std::uint64_t>(size) << (2 * kWordBits - kProbabilityBits)) {
      block.words.push_back(static_cast<std::uint16_t>(state));
      state >>= kWordBits;
    }
    state = (state / size << kProbabilityBits) + state % size + start;
  }
  block.words.push_back(static_cast<std::uint16_t>(state));
  block.words.push_back(static_cast<std::uint16_t>(state >> kWordBits));
  std::ranges::reverse(block.words);
  return block;
}

std::vector<std::int32_t> decode_levels(const EntropyModel& model, const LevelBlock& block,
                                        std::span<const std::uint8_t> scales) {
  const std::size_t count = scales.size();
  std::vector<std::int32_t> magnitudes(block.tokens * count);
  Reader reader(block.words);
  for (std::size_t token = 0; token < block.tokens; ++token) {
    TokenContext context(model, magnitudes, count, token);
    std::uint32_t state = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const std::uint32_t quantiser = state % 2;
      const std::size_t at = (context.of(n, scales[n]) + quantiser) * kLevels;
      std::uint32_t level = reader.level(std::span(model.frequencies).subspan(at, kLevels));
      bool negative = false;
      if (level > 0) negative = reader.bit();
      if (level == kLevels - 1) level += reader.excess();
      const std::int32_t magnitude = magnitude_of(quantiser, level);
      magnitudes[token * count + n] = negative ? -magnitude : magnitude;
      context.add(scales[n], magnitude);
      state = next_state(state, level);
    }
  }
  reader.check_end();
  return magnitudes;
}

}  // namespace kvs::inline calibrate
