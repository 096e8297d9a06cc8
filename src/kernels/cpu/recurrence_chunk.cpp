// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/recurrence_chunk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cpu/simd/loops.h"

namespace kvs::cpu {
namespace {

constexpr std::size_t kFewTokens = 8;  // fewer go one by one: a chunk costs a few passes over the state

constexpr std::size_t rounded(std::size_t floats) { return (floats + kPanel - 1) / kPanel * kPanel; }

std::size_t product_floats(const RecurrenceShape& shape) {
  constexpr std::size_t kRows = 2 * RecurrenceChunk::kBlock, kTokens = RecurrenceChunk::kTokens;
  const auto floats = [](std::size_t m, std::size_t n, std::size_t k) {
    return std::max(loops().panel_scratch(m, n, k, false, false), loops().panel_scratch(m, n, k, false, true));
  };
  return std::max({floats(kRows, shape.value_dim, shape.key_dim), floats(kRows, kTokens, shape.key_dim),
                   floats(kRows, shape.value_dim, kTokens), floats(shape.key_dim, shape.value_dim, kTokens)});
}

/// Packs `columns` columns of x [rows, columns] as panels of `panel_rows` rows.
void pack(const float* x, std::size_t rows, std::size_t columns, float* panels, std::size_t panel_rows) {
  for (std::size_t column = 0; column < columns; column += kPanel, panels += panel_rows * kPanel) {
    const std::size_t count = std::min(kPanel, columns - column);
    for (std::size_t row = 0; row < rows; ++row) {
      float* const to = panels + row * kPanel;
      std::copy_n(x + row * columns + column, count, to);
      std::fill(to + count, to + kPanel, 0.0F);
    }
  }
}

void scale(float* x, std::size_t count, float factor) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

/// to += factor · x.
void add(const float* x, std::size_t count, float factor, float* to) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] += factor * x[i];
}

}  // namespace

RecurrenceChunk::RecurrenceChunk(const RecurrenceShape& shape, float* scratch) : shape_(shape) {
  const std::size_t panels = rounded(shape.value_dim);
  const auto take = [&scratch](std::size_t floats) { return std::exchange(scratch, scratch + rounded(floats)); };
  betas_ = take(kTokens);
  decays_ = take(kTokens);
  sums_ = take(kTokens);
  rows_ = take(2 * kTokens * shape.key_dim);
  key_panels_ = take(kTokens * shape.key_dim);
  late_keys_ = take(kTokens * shape.key_dim);
  state_panels_ = take(panels * shape.key_dim);
  from_state_ = take(2 * kBlock * shape.value_dim);
  scores_ = take(2 * kBlock * kTokens);
  lower_ = take(kBlock * kTokens);
  written_ = take(kBlock * shape.value_dim);
  written_panels_ = take(panels * kTokens);
  mixed_ = take(kBlock * shape.value_dim);
  product_scratch_ = scratch;
}

std::size_t RecurrenceChunk::scratch_floats(const RecurrenceShape& shape) {
  const std::size_t panels = rounded(shape.value_dim);
  return 3 * kTokens + rounded(2 * kTokens * shape.key_dim) + 2 * rounded(kTokens * shape.key_dim) +
         panels * (shape.key_dim + kTokens) + rounded(2 * kBlock * shape.value_dim) + 3 * kBlock * kTokens +
         2 * rounded(kBlock * shape.value_dim) + product_floats(shape);
}

void RecurrenceChunk::multiply(std::size_t m, std::size_t n, std::size_t k, const float* x, const float* panels,
                               std::size_t panel_rows, float* out, bool accumulate) const noexcept {
  loops().multiply({.m = m,
                    .n = n,
                    .k = k,
                    .bf16 = false,
                    .accumulate = accumulate,
                    .x = x,
                    .panels = panels,
                    .panel_stride = panel_rows * kPanel,
                    .bias = nullptr,
                    .out = out,
                    .scratch = product_scratch_});
}

void RecurrenceChunk::run(const RecurrenceTokens& tokens, float* state) noexcept {
  if (tokens.count < kFewTokens) {
    for (std::size_t token = 0; token < tokens.count; ++token) step(tokens, token, state);
    return;
  }
  pad(tokens.count);
  pack_keys();
  pack(state, shape_.key_dim, shape_.value_dim, state_panels_, shape_.key_dim);
  for (std::size_t block = 0; block < padded_ / kBlock; ++block) run_block(tokens, block);
  move_state(state);
}

/// The recurrence itself. The state is read twice and written once.
void RecurrenceChunk::step(const RecurrenceTokens& tokens, std::size_t token, float* state) const noexcept {
  const std::size_t width = shape_.value_dim;
  const float *q = query(token), *k = key(token), *v = tokens.values + token * tokens.value_stride;
  const float decay = std::exp(decays_[token]);
  std::fill_n(written_, width, 0.0F);
  if (shape_.delta)
    for (std::size_t i = 0; i < shape_.key_dim; ++i) add(state + i * width, width, -decay * k[i], written_);
  float* const out = tokens.out + token * tokens.out_stride;
  for (std::size_t i = 0; i < width; ++i) {
    written_[i] = betas_[token] * (written_[i] + v[i]);
    out[i] = tokens.skip * v[i];
  }
  for (std::size_t i = 0; i < shape_.key_dim; ++i) {
    float* const row = state + i * width;
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j) {
      row[j] = decay * row[j] + k[i] * written_[j];
      out[j] += q[i] * row[j];
    }
  }
}

/// Completes the last block by tokens that change nothing, and sums the decays.
void RecurrenceChunk::pad(std::size_t count) noexcept {
  padded_ = (count + kBlock - 1) / kBlock * kBlock;
  for (std::size_t token = count; token < padded_; ++token) {
    std::fill_n(query(token), shape_.key_dim, 0.0F);
    std::fill_n(key(token), shape_.key_dim, 0.0F);
    betas_[token] = decays_[token] = 0;
  }
  double sum = 0;
  for (std::size_t token = 0; token < padded_; ++token) {
    sum += static_cast<double>(decays_[token]);
    sums_[token] = static_cast<float>(sum);
  }
}

void RecurrenceChunk::pack_keys() noexcept {
  const float end = sums_[padded_ - 1];
  for (std::size_t token = 0; token < padded_; ++token) {
    const float* const k = key(token);
    float* const panel = key_panels_ + token / kBlock * shape_.key_dim * kBlock + token % kBlock;
    const float decay = std::exp(end - sums_[token]);
    for (std::size_t i = 0; i < shape_.key_dim; ++i) {
      panel[i * kBlock] = k[i];
      late_keys_[i * padded_ + token] = decay * k[i];
    }
  }
}

void RecurrenceChunk::run_block(const RecurrenceTokens& tokens, std::size_t block) noexcept {
  const std::size_t end = (block + 1) * kBlock, rows = shape_.delta ? 2 * kBlock : kBlock, width = shape_.value_dim;
  const float* const x = rows_ + block * 2 * kBlock * shape_.key_dim;
  multiply(rows, end, shape_.key_dim, x, key_panels_, shape_.key_dim, scores_, false);
  multiply(rows, width, shape_.key_dim, x, state_panels_, shape_.key_dim, from_state_, false);
  scale_scores(block);
  write_rows(tokens, block);
  if (shape_.delta) solve_block(block);
  pack(written_, kBlock, width, written_panels_ + block * kBlock * kPanel, kTokens);
  multiply(kBlock, width, end, scores_, written_panels_, kTokens, mixed_, false);
  for (std::size_t row = 0; row < kBlock && block * kBlock + row < tokens.count; ++row) {
    const std::size_t token = block * kBlock + row;
    const float *const v = tokens.values + token * tokens.value_stride, *const past = from_state_ + row * width;
    const float decay = std::exp(sums_[token]);
    float* const out = tokens.out + token * tokens.out_stride;
    for (std::size_t i = 0; i < width; ++i) out[i] = mixed_[row * width + i] + decay * past[i] + tokens.skip * v[i];
  }
}

/// scores of queries *= e^(g[t] − g[s]), 0 for s > t; lower = −A of the tokens before the block. Before the block, the
/// exponent is the sum of two exponents below 0, one for the row and one for the column.
void RecurrenceChunk::scale_scores(std::size_t block) noexcept {
  const std::size_t first = block * kBlock, end = first + kBlock;
  const float start = block == 0 ? 0 : sums_[first - 1];
  float columns[kTokens];
  for (std::size_t token = 0; token < first; ++token) columns[token] = std::exp(start - sums_[token]);
  for (std::size_t row = 0; row < kBlock; ++row) {
    float *const queries = scores_ + row * end, *const keys = queries + kBlock * end,
                 *const lower = lower_ + row * first;
    const std::size_t token = first + row;
    const float decay = std::exp(sums_[token] - start), beta = -betas_[token];
    for (std::size_t column = 0; column < first; ++column) queries[column] *= decay * columns[column];
    for (std::size_t column = 0; shape_.delta && column < first; ++column)
      lower[column] = beta * decay * columns[column] * keys[column];
    for (std::size_t column = first; column < end; ++column) {
      const float within = column > token ? 0 : std::exp(sums_[token] - sums_[column]);
      queries[column] *= within;
      if (shape_.delta) keys[column] *= beta * within;
    }
  }
}

/// written = beta · (v − e^g · S0ᵀ k), or beta · v.
void RecurrenceChunk::write_rows(const RecurrenceTokens& tokens, std::size_t block) noexcept {
  const std::size_t width = shape_.value_dim;
  for (std::size_t row = 0; row < kBlock; ++row) {
    const std::size_t token = block * kBlock + row;
    float* const to = written_ + row * width;
    if (token >= tokens.count) {
      std::fill_n(to, width, 0.0F);
      continue;
    }
    const float* const v = tokens.values + token * tokens.value_stride;
    const float beta = betas_[token];
    for (std::size_t i = 0; i < width; ++i) to[i] = beta * v[i];
    if (shape_.delta) add(from_state_ + (kBlock + row) * width, width, -beta * std::exp(sums_[token]), to);
  }
}

/// Solves (I + A) W = written for the block's rows, with the rows of earlier blocks solved.
void RecurrenceChunk::solve_block(std::size_t block) noexcept {
  const std::size_t first = block * kBlock, end = first + kBlock, width = shape_.value_dim;
  if (first > 0) multiply(kBlock, width, first, lower_, written_panels_, kTokens, written_, true);
  for (std::size_t row = 1; row < kBlock; ++row) {
    const float* const keys = scores_ + (kBlock + row) * end + first;
    for (std::size_t before = 0; before < row; ++before)
      add(written_ + before * width, width, keys[before], written_ + row * width);
  }
}

void RecurrenceChunk::move_state(float* state) noexcept {
  scale(state, shape_.key_dim * shape_.value_dim, std::exp(sums_[padded_ - 1]));
  multiply(shape_.key_dim, shape_.value_dim, padded_, late_keys_, written_panels_, kTokens, state, true);
}

}  // namespace kvs::cpu
