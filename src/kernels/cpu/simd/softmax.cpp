// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/fast_math.h"
#include "kernels/cpu/simd/functions.h"

// Source: Milakov & Gimelshein (2018), arXiv:1805.02867.
namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

constexpr float kNothing = -__builtin_inff();

float largest_of(const float* values, std::size_t count) {
  constexpr std::size_t kAtOnce = 4;  // a comparison need not wait for the one before
  Lanes bests[kAtOnce] = {splat(kNothing), splat(kNothing), splat(kNothing), splat(kNothing)};
  std::size_t at = 0;
  for (; at + kAtOnce * kLanes <= count; at += kAtOnce * kLanes)
    for (std::size_t n = 0; n < kAtOnce; ++n) bests[n] = larger(load(values + at + n * kLanes), bests[n]);
  Lanes best = larger(larger(bests[0], bests[1]), larger(bests[2], bests[3]));
  for (; at + kLanes <= count; at += kLanes) best = larger(load(values + at), best);
  if (at < count) best = larger(load_part(values + at, count - at, kNothing), best);
  return largest(best);
}

/// p[i] = 2^((scores[i] − base) · scale) for i < count, 0 up to `width`. Returns Σ p per lane. p may equal scores.
template <class T>
Lanes exponentiate(const float* scores, std::size_t count, std::size_t width, float base, float scale, T* p) {
  Lanes sum{};
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    const Lanes value = exp2_of_nonpositive((load(scores + at) - base) * scale);
    sum += value;
    store_fast(p + at, value);
  }
  if (at < count) {
    const Lanes value = exp2_of_nonpositive((load_part(scores + at, count - at, kNothing) - base) * scale);  // 2^−∞ = 0
    sum += value;
    store_fast(p + at, value);
    at += kLanes;
  }
  for (; at < width; at += kLanes) store_fast(p + at, Lanes{});
  return sum;
}

/// Caps a row's scores. Keys before those that the row reads get the score −∞.
void reshape(const ScoreTile& tile, std::size_t row) {
  float* scores = tile.scores + row * tile.width;
  if (tile.inverse_cap > 0)
    for (std::size_t at = 0; at < tile.width; at += kLanes)
      store(scores + at, tanh(load(scores + at) * tile.inverse_cap));
  const std::size_t begin = tile.begin[row % tile.height];
  for (std::size_t at = 0; at < begin; ++at) scores[at] = kNothing;
}

template <class T>
void soften_as(const ScoreTile& tile) {
  for (std::size_t row = 0; row < tile.rows; ++row) {
    reshape(tile, row);
    const float before = tile.largest[row];
    const float found = largest_of(tile.scores + row * tile.width, tile.end[row % tile.height]);
    const float now = found > before ? found : before;
    tile.largest[row] = now;
    // While all scores are −∞, subtracts nothing: −∞ − −∞ would be NaN.
    tile.decrease[row] = before - (now == kNothing ? 0.0F : now);
  }
  for (std::size_t row = 0; row < tile.rows; row += kLanes)
    store(tile.decrease + row, exp2(load(tile.decrease + row) * tile.scale));
  for (std::size_t row = 0; row < tile.rows; ++row) {
    const float base = tile.largest[row] == kNothing ? 0.0F : tile.largest[row];
    const Lanes fresh = exponentiate(tile.scores + row * tile.width, tile.end[row % tile.height], tile.width, base,
                                     tile.scale, static_cast<T*>(tile.p) + row * tile.width);
    float* sum = tile.sum + row * kSumLanes;
    store(sum, load(sum) * tile.decrease[row] + fresh);
  }
}

}  // namespace

void soften(const ScoreTile& tile) noexcept {
  if (tile.bf16)
    soften_as<std::uint16_t>(tile);
  else
    soften_as<float>(tile);
}

void rescale_rows(float* mix, const float* factors, std::size_t rows, std::size_t channels) noexcept {
  for (std::size_t row = 0; row < rows; ++row, mix += channels) {
    if (factors[row] == 1.0F) continue;
    for (std::size_t channel = 0; channel < channels; ++channel) mix[channel] *= factors[row];
  }
}

void divide_row(const float* mix, const float* sums, std::size_t channels, void* to, bool bf16) noexcept {
  const auto factor = static_cast<float>(1.0 / sum_of(load(sums)));
  const std::size_t whole = channels / kLanes * kLanes;
  const auto write = [&](auto* out) {
    for (std::size_t at = 0; at < whole; at += kLanes) store(out + at, load(mix + at) * factor);
    if (whole < channels) store_part(out + whole, load_part(mix + whole, channels - whole) * factor, channels - whole);
  };
  if (bf16)
    write(static_cast<std::uint16_t*>(to));
  else
    write(static_cast<float*>(to));
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
