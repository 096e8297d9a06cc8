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

/// Computes scores[row, key] for all keys of the run. A key is read once for all rows.
void score(const RowRun& run) {
  for (std::size_t key = 0; key < run.keys; ++key)
    for (std::size_t row = 0; row < run.rows; ++row)
      run.scores[row * run.stride + key] = dot(run.q + row * run.head_dim, run.k + key * run.head_dim, run.head_dim);
}

/// mix[row, :] = Σ weights · v over channels [first, first + Count · kLanes) for up to kRows rows; loads values once.
template <std::size_t Rows, std::size_t Count>
void mix_block(const RowRun& run, std::size_t row, std::size_t first) {
  Lanes sums[Rows][Count] = {};
  for (std::size_t key = 0; key < run.keys; ++key) {
    const float* const v = run.v + key * run.head_dim + first;
    for (std::size_t r = 0; r < Rows; ++r) {
      const Lanes weight = splat(run.scores[(row + r) * run.stride + key]);
      for (std::size_t c = 0; c < Count; ++c) sums[r][c] = multiply_add(weight, load(v + c * kLanes), sums[r][c]);
    }
  }
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t c = 0; c < Count; ++c) store(run.mix + (row + r) * run.head_dim + first + c * kLanes, sums[r][c]);
}

void mix_channel(const RowRun& run, std::size_t row, std::size_t channel) {
  float sum = 0;
  for (std::size_t key = 0; key < run.keys; ++key)
    sum += run.scores[row * run.stride + key] * run.v[key * run.head_dim + channel];
  run.mix[row * run.head_dim + channel] = sum;
}

template <std::size_t Rows>
void mix_rows(const RowRun& run, std::size_t row) {
  std::size_t channel = 0;
  for (; channel + 2 * kLanes <= run.head_dim; channel += 2 * kLanes) mix_block<Rows, 2>(run, row, channel);
  for (; channel + kLanes <= run.head_dim; channel += kLanes) mix_block<Rows, 1>(run, row, channel);
  for (; channel < run.head_dim; ++channel)
    for (std::size_t r = 0; r < Rows; ++r) mix_channel(run, row + r, channel);
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
  std::size_t row = 0;
  for (; row + 4 <= run.rows; row += 4) mix_rows<4>(run, row);
  if (row + 3 == run.rows) return mix_rows<3>(run, row);
  if (row + 2 == run.rows) return mix_rows<2>(run, row);
  if (row + 1 == run.rows) mix_rows<1>(run, row);
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
