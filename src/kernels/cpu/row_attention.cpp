// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/row_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/cpu/held_rows.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/tiles.h"

namespace kvs::cpu {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// Shapes of one call and the layout of its scratch memory. It holds per (member, KV head) the stacked queries and the
/// tokens' own keys and values, and per run of keys its results. Queries, keys, values and results are in the basis in
/// which the past is read, until join_runs() leaves that basis.
struct Layout {
  Layout(const AttentionInput& in, bool further)
      : tokens(in.q.extent(2)),
        head_dim(in.q.extent(3)),
        kv_heads(in.k.extent(1)),
        group(in.q.extent(1) / kv_heads),
        rows(group * tokens),
        pairs(in.q.extent(0) * kv_heads),
        past(in.past.count()),
        past_runs((past + kRowRun - 1) / kRowRun),
        further_run(past_runs + 1),
        runs(past_runs + (further ? 2 : 1)),
        keys(in.past, true, !further),
        values(in.past, false, !further),
        shared_rows(in.past.k.data == in.past.v.data && in.past.slots.cosine.empty() && in.past.late_k.empty()) {}

  std::size_t run_floats() const noexcept { return rows * (head_dim + 2 + kRowRun); }
  std::size_t read_floats() const noexcept { return keys.spare_floats(kRowRun) + values.spare_floats(kRowRun); }
  std::size_t results_floats() const noexcept { return pairs * ((rows + 2 * tokens) * head_dim + runs * run_floats()); }
  std::size_t floats(std::size_t workers) const noexcept { return results_floats() + workers * read_floats(); }
  float* queries(float* base, std::size_t pair) const noexcept { return base + pair * rows * head_dim; }
  float* own_keys(float* base, std::size_t pair) const noexcept {
    return base + (pairs * rows + pair * tokens) * head_dim;
  }
  float* own_values(float* base, std::size_t pair) const noexcept { return own_keys(base, pairs + pair); }
  float* results(float* base, std::size_t pair, std::size_t run) const noexcept {
    return own_keys(base, 2 * pairs) + (pair * runs + run) * run_floats();
  }

  /// Returns a worker's memory for keys, then values, that must be decoded or copied before use.
  float* spare(float* base) const noexcept { return base + results_floats() + this_worker() * read_floats(); }

  std::size_t tokens, head_dim, kv_heads, group, rows, pairs, past, past_runs, further_run, runs;
  PastReader keys, values;
  bool shared_rows;  // the same rows are keys and values, as in EliteKV
};

/// Stacks the queries of a group's heads: row = head · tokens + token.
void gather(const AttentionInput& in, const Layout& l, std::size_t pair, float* base) {
  const auto take = [&](const float* from, std::size_t rows, float* to, const PastReader& reader, BasisChange change) {
    std::copy_n(from + pair * rows * l.head_dim, rows * l.head_dim, to);
    reader.change_basis(change, to, rows, l.spare(base));
  };
  take(in.q.data(), l.rows, l.queries(base, pair), l.keys, BasisChange::kQueryToBasis);
  take(in.k.data(), l.tokens, l.own_keys(base, pair), l.keys, BasisChange::kToBasis);
  take(in.v.data(), l.tokens, l.own_values(base, pair), l.values, BasisChange::kToBasis);
}

/// Returns the stride of a row's scores against a run of keys.
constexpr std::size_t stride_of(std::size_t keys) { return (keys + kSumLanes - 1) / kSumLanes * kSumLanes; }

void run_keys(const AttentionInput& in, const Layout& l, std::size_t pair, std::size_t run, float* base) {
  const std::size_t member = pair / l.kv_heads, head = pair % l.kv_heads;
  const bool own = run == l.past_runs;
  const std::size_t first = run * kRowRun, keys = own ? l.tokens : std::min(kRowRun, l.past - first);
  std::size_t begin[kMaxQueryRows], end[kMaxQueryRows];
  for (std::size_t r = 0; r < l.rows; ++r) {
    const std::size_t token = r % l.tokens, position = l.past + token, from = own ? l.past : first;
    const std::size_t oldest = oldest_row(position, in.window, in.chunk, in.first_position);
    begin[r] = std::min(keys, oldest > from ? oldest - from : 0);
    end[r] = own ? token + 1 : keys;
  }
  float *const results = l.results(base, pair, run), *const spare = l.spare(base);
  const float* const k = own ? l.own_keys(base, pair) : l.keys.read(member, head, first, keys, spare);
  const float* v = own ? l.own_values(base, pair) : k;
  if (!own && !l.shared_rows) v = l.values.read(member, head, first, keys, spare + l.keys.spare_floats(kRowRun));
  loops().attend_rows({.rows = l.rows,
                       .keys = keys,
                       .head_dim = l.head_dim,
                       .stride = stride_of(keys),
                       .q = l.queries(base, pair),
                       .k = k,
                       .v = v,
                       .begin = begin,
                       .end = end,
                       .scale = (in.softcap > 0 ? in.softcap : in.scale) * 0x1.715476p0F,
                       .inverse_cap = in.softcap > 0 ? in.scale / in.softcap : 0,
                       .scores = results + l.rows * (l.head_dim + 2),
                       .largest = results,
                       .sum = results + l.rows,
                       .mix = results + 2 * l.rows});
}

/// Joins the runs of one query row and writes the row. @return ln Σ exp(score)
float join_runs(const AttentionInput& in, const Layout& l, std::size_t pair, std::size_t row, float* base, DType type,
                Operand out) {
  const float scale = (in.softcap > 0 ? in.softcap : in.scale) * 0x1.715476p0F;
  const std::size_t member = pair / l.kv_heads, head = pair % l.kv_heads * l.group + row / l.tokens;
  const bool sunk = !in.sinks.empty();  // a run of one key without a value
  const float sink = sunk ? in.sinks.data()[head] / (in.softcap > 0 ? in.softcap : in.scale) : kNothing;
  float largest = sink;
  for (std::size_t run = 0; run < l.runs; ++run) largest = std::max(largest, l.results(base, pair, run)[row]);
  double sum = sunk ? static_cast<double>(std::exp2((sink - largest) * scale)) : 0;
  float* const mixed = l.results(base, pair, l.runs - 1) + 2 * l.rows + row * l.head_dim;  // always read
  for (std::size_t n = 0; n < l.runs; ++n) {
    const std::size_t run = l.runs - 1 - n;
    float* const results = l.results(base, pair, run);
    const float factor = std::exp2((results[row] - largest) * scale);  // 0 for a run of which no key was read
    sum += static_cast<double>(factor) * static_cast<double>(results[l.rows + row]);
    const float* const mix = results + 2 * l.rows + row * l.head_dim;
    for (std::size_t i = 0; i < l.head_dim; ++i) mixed[i] = factor * mix[i] + (n == 0 ? 0.0F : mixed[i]);
    results[row] = factor;  // write_mass() uses the factor and the sum
  }
  l.results(base, pair, l.past_runs)[l.rows + row] = static_cast<float>(sum);
  l.values.change_basis(BasisChange::kFromBasis, mixed, 1, l.spare(base));
  const std::size_t at = (member * l.tokens + row % l.tokens) * out.columns + head * l.head_dim;
  const auto inverse = static_cast<float>(1.0 / sum);
  for (std::size_t i = 0; i < l.head_dim; ++i) {
    if (type == DType::kF32)
      static_cast<float*>(out.data)[at + i] = mixed[i] * inverse;
    else
      static_cast<std::uint16_t*>(out.data)[at + i] = f32_to_bf16(mixed[i] * inverse);
  }
  return static_cast<float>((static_cast<double>(largest * scale) + std::log2(sum)) * std::numbers::ln2);
}

/// Writes in.mass for one run's keys. Call it after join_runs() of all rows of the head.
void write_mass(const AttentionInput& in, const Layout& l, std::size_t head, std::size_t run, float* base) {
  const std::size_t first = std::min(run * kRowRun, l.past),
                    keys = run == l.past_runs ? 1 : std::min(kRowRun, l.past - first);
  const float *const factors = l.results(base, head, run), *const sums = l.results(base, head, l.past_runs) + l.rows;
  const float* weights = factors + l.rows * (l.head_dim + 2);
  float* const mass = in.mass.data() + head * (l.past + 1) + first;
  std::fill_n(mass, keys, 0.0F);
  for (std::size_t row = 0; row < l.rows; ++row, weights += stride_of(keys))
    for (std::size_t key = 0; key < keys; ++key) mass[key] += factors[row] / sums[row] * weights[key];
}

}  // namespace

bool are_few_tokens(const AttentionInput& in) noexcept {
  constexpr std::size_t kFew = 8;
  const std::size_t tokens = in.q.extent(2), group = in.q.extent(1) / in.k.extent(1);
  const bool fits = tokens <= kFew && group * tokens <= kMaxQueryRows && in.past.settling.step == 0;
  return (in.past.count() > 0 || !in.mass.empty()) && fits;
}

void few_tokens_attention(const AttentionInput& in, DType type, Operand out, int threads, AlignedBuffer& scratch,
                          const FurtherRun* further, float* log_sums) {
  const Layout l(in, further != nullptr);
  scratch.reserve(l.floats(static_cast<std::size_t>(threads)) * sizeof(float));
  auto* const base = static_cast<float*>(scratch.data());
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (std::size_t pair = 0; pair < l.pairs; ++pair) gather(in, l, pair, base);
    if (further != nullptr) further->run(in, base, {l.results(base, 0, l.further_run), l.runs * l.run_floats()});
    const std::size_t row_runs = l.past_runs + 1;
#pragma omp for schedule(dynamic, 1)
    for (std::size_t task = 0; task < l.pairs * row_runs; ++task)
      run_keys(in, l, task / row_runs, task % row_runs, base);
#pragma omp for schedule(static)
    for (std::size_t task = 0; task < l.pairs * l.rows; ++task) {
      const float log_sum = join_runs(in, l, task / l.rows, task % l.rows, base, type, out);
      if (log_sums != nullptr) log_sums[task] = log_sum;
    }
    if (!in.mass.empty()) {
#pragma omp for schedule(static)
      for (std::size_t task = 0; task < l.pairs * l.runs; ++task) write_mass(in, l, task / l.runs, task % l.runs, base);
    }
  }
}

}  // namespace kvs::cpu
