// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/fast_math.h"
#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

constexpr float kNothing = -__builtin_inff();

/// Adds the upper half of the lanes to the lower half until one is left.
float sum_lanes(Lanes lanes) {
#if defined(__x86_64__)
  __m256 halves[kLanes / 8];
  std::memcpy(halves, &lanes, sizeof(lanes));
  const __m256 eight = kLanes == 16 ? _mm256_add_ps(halves[0], halves[kLanes / 8 - 1]) : halves[0];
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
#endif
}

float dot(const float* a, const float* b, std::size_t count) {
  Lanes sum{};
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) sum = multiply_add(load(a + at), load(b + at), sum);
  if (at < count) sum = multiply_add(load_part(a + at, count - at), load_part(b + at, count - at), sum);
  return sum_lanes(sum);
}

constexpr std::size_t kKeys = 4;  // scores of a query row that are computed at once

/// Writes the sums of kKeys registers, each with the bits of sum_lanes().
void sum_each(const Lanes (&lanes)[kKeys], float* to) {
#if defined(__x86_64__)
  __m256 eights[kKeys];
  for (std::size_t n = 0; n < kKeys; ++n) {
    __m256 halves[kLanes / 8];
    std::memcpy(halves, &lanes[n], sizeof(lanes[n]));
    eights[n] = kLanes == 16 ? _mm256_add_ps(halves[0], halves[kLanes / 8 - 1]) : halves[0];
  }
  const auto fours = [](__m256 a, __m256 b) {  // [four of a, four of b]
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  };
  const __m256 early = fours(eights[0], eights[1]), late = fours(eights[2], eights[3]);
  const __m256 twos = _mm256_add_ps(_mm256_shuffle_ps(early, late, 0x44), _mm256_shuffle_ps(early, late, 0xee));
  const __m256 ones = _mm256_add_ps(_mm256_shuffle_ps(twos, twos, 0x88), _mm256_shuffle_ps(twos, twos, 0xdd));
  _mm_storeu_ps(to, _mm_unpacklo_ps(_mm256_castps256_ps128(ones), _mm256_extractf128_ps(ones, 1)));
#else
  for (std::size_t n = 0; n < kKeys; ++n) to[n] = sum_lanes(lanes[n]);
#endif
}

/// Computes the scores of kKeys keys for some rows. Each has the bits of dot().
template <std::size_t Rows>
void score_block(const RowRun& run, std::size_t row, std::size_t key) {
  const float *const q = run.q + row * run.head_dim, *const k = run.k + key * run.head_dim;
  Lanes sums[Rows][kKeys];  // NOLINT: a loop sets it, because an initialiser would be a slow call
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t n = 0; n < kKeys; ++n) sums[r][n] = Lanes{};
  const auto add = [&](auto loaded, std::size_t at) {
    Lanes queries[Rows];
    for (std::size_t r = 0; r < Rows; ++r) queries[r] = loaded(q + r * run.head_dim + at);
    for (std::size_t n = 0; n < kKeys; ++n) {
      const Lanes one = loaded(k + n * run.head_dim + at);
      for (std::size_t r = 0; r < Rows; ++r) sums[r][n] = multiply_add(queries[r], one, sums[r][n]);
    }
  };
  std::size_t at = 0;
  for (; at + kLanes <= run.head_dim; at += kLanes) add([](const float* from) { return load(from); }, at);
  if (at < run.head_dim) add([&](const float* from) { return load_part(from, run.head_dim - at); }, at);
  for (std::size_t r = 0; r < Rows; ++r) sum_each(sums[r], run.scores + (row + r) * run.stride + key);
}

/// Computes scores[row, key] for all keys of the run. A key is read once for all rows.
void score(const RowRun& run) {
  std::size_t key = 0;
  for (; key + kKeys <= run.keys; key += kKeys) {
    std::size_t row = 0;
    for (; row + 3 <= run.rows; row += 3) score_block<3>(run, row, key);
    if (row + 2 == run.rows) score_block<2>(run, row, key);
    if (row + 1 == run.rows) score_block<1>(run, row, key);
  }
  for (; key < run.keys; ++key)
    for (std::size_t row = 0; row < run.rows; ++row)
      run.scores[row * run.stride + key] = dot(run.q + row * run.head_dim, run.k + key * run.head_dim, run.head_dim);
}

/// Keys whose values are mixed before the next ones are read: their values fit the first-level cache.
constexpr std::size_t kMixedKeys = 32;

/// The keys [first, last) of a run whose values are added.
struct MixedKeys {
  std::size_t first, last;
};

/// mix[row, :] += Σ weights · v over channels [first, first + Count · kLanes) for `Rows` rows; loads values once. The
/// first keys replace what mix holds.
template <std::size_t Rows, std::size_t Count>
void mix_block(const RowRun& run, const MixedKeys& keys, std::size_t row, std::size_t first) {
  float* const mix = run.mix + row * run.head_dim + first;
  Lanes sums[Rows][Count];
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t c = 0; c < Count; ++c)
      sums[r][c] = keys.first > 0 ? load(mix + r * run.head_dim + c * kLanes) : Lanes{};
  for (std::size_t key = keys.first; key < keys.last; ++key) {
    const float* const v = run.v + key * run.head_dim + first;
    for (std::size_t r = 0; r < Rows; ++r) {
      const Lanes weight = splat(run.scores[(row + r) * run.stride + key]);
      for (std::size_t c = 0; c < Count; ++c) sums[r][c] = multiply_add(weight, load(v + c * kLanes), sums[r][c]);
    }
  }
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t c = 0; c < Count; ++c) store(mix + r * run.head_dim + c * kLanes, sums[r][c]);
}

void mix_channel(const RowRun& run, const MixedKeys& keys, std::size_t row, std::size_t channel) {
  float& mix = run.mix[row * run.head_dim + channel];
  float sum = keys.first > 0 ? mix : 0;
  for (std::size_t key = keys.first; key < keys.last; ++key)
    sum += run.scores[row * run.stride + key] * run.v[key * run.head_dim + channel];
  mix = sum;
}

template <std::size_t Rows>
void mix_rows(const RowRun& run, const MixedKeys& keys, std::size_t row) {
  std::size_t channel = 0;
  for (; channel + 2 * kLanes <= run.head_dim; channel += 2 * kLanes) mix_block<Rows, 2>(run, keys, row, channel);
  for (; channel + kLanes <= run.head_dim; channel += kLanes) mix_block<Rows, 1>(run, keys, row, channel);
  for (; channel < run.head_dim; ++channel)
    for (std::size_t r = 0; r < Rows; ++r) mix_channel(run, keys, row + r, channel);
}

void mix_keys(const RowRun& run, const MixedKeys& keys) {
  std::size_t row = 0;
  for (; row + 4 <= run.rows; row += 4) mix_rows<4>(run, keys, row);
  if (row + 3 == run.rows) return mix_rows<3>(run, keys, row);
  if (row + 2 == run.rows) return mix_rows<2>(run, keys, row);
  if (row + 1 == run.rows) mix_rows<1>(run, keys, row);
}

}  // namespace

void weigh_row(const RowRun& run, std::size_t row) noexcept {
  float* const scores = run.scores + row * run.stride;
  const std::size_t begin = run.begin[row], end = run.end[row];
  if (run.inverse_cap > 0)
    for (std::size_t at = 0; at < run.stride; at += kLanes)
      store(scores + at, tanh(load(scores + at) * run.inverse_cap));
  for (std::size_t key = 0; key < begin; ++key) scores[key] = kNothing;
  for (std::size_t key = end; key < run.stride; ++key) scores[key] = kNothing;
  Lanes best = splat(kNothing);
  for (std::size_t at = 0; at < run.stride; at += kLanes) best = larger(load(scores + at), best);
  const float most = largest(best), base = most == kNothing ? 0.0F : most;
  Lanes sum{};
  for (std::size_t at = 0; at < run.stride; at += kLanes) {
    const Lanes weight = exp2((load(scores + at) - base) * run.scale);
    sum += weight;
    store(scores + at, weight);
  }
  run.largest[row] = most;
  run.sum[row] = sum_lanes(sum);
}

void attend_rows(const RowRun& run) noexcept {
  score(run);
  for (std::size_t row = 0; row < run.rows; ++row) weigh_row(run, row);
  mix_keys(run, {0, run.keys < kMixedKeys ? run.keys : kMixedKeys});
  for (std::size_t key = kMixedKeys; key < run.keys; key += kMixedKeys)
    mix_keys(run, {key, run.keys - key < kMixedKeys ? run.keys : key + kMixedKeys});
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
