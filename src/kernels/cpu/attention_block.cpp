// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_block.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "kernels/attention_ops.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::cpu {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr std::size_t kHeightStep = 16;  // rows per head are rounded up to it, to limit the number of compiled sizes

void narrow(const float* from, std::size_t count, float* to) { std::copy_n(from, count, to); }
void narrow(const float* from, std::size_t count, std::uint16_t* to) {
  std::transform(from, from + count, to, f32_to_bf16);
}

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

}  // namespace

/// The working set of one block, which fits a private cache. R rows = heads · height.
struct AttentionBlock::Rows {
  std::size_t height;
  void* q;                   // [R, head_dim] in the compute type
  float* scores;             // [R, width]
  void* p;                   // [R, width] in the compute type; in f32 the same memory as scores
  float* mix;                // [slice][R, channels]
  float* largest;            // [R] running maximum
  float* sum;                // [R, kSumLanes] running sum per lane; lanes are added only at the end
  float* decrease;           // [R] of the current run: correction of the earlier runs
  std::size_t *begin, *end;  // [height] of the current run: keys that a token reads
};

AttentionBlock::AttentionBlock(ProductEngine& engine, const StatesLayout& layout, std::size_t heads, std::size_t tokens,
                               std::size_t total_tokens, const ScoreRule& rule)
    : engine_(&engine),
      layout_(&layout),
      heads_(heads),
      tokens_(tokens),
      height_(round_up(tokens, kHeightStep)),
      rule_(rule),
      scale_((rule.softcap > 0 ? rule.softcap : rule.scale) * 0x1.715476p0F),
      inverse_cap_(rule.softcap > 0 ? rule.scale / rule.softcap : 0),
      sink_scale_(1 / (rule.softcap > 0 ? rule.softcap : rule.scale)) {
  const std::size_t last = total_tokens % tokens == 0 ? tokens : total_tokens % tokens;
  last_height_ = round_up(last, kHeightStep);
  for (std::size_t width = StatesLayout::kWidthStep; width <= StatesLayout::kChunk; width += StatesLayout::kWidthStep) {
    products_[0].push_back(compile(heads * height_, width));
    products_[1].push_back(compile(heads * last_height_, width));
  }
}

std::size_t AttentionBlock::block_tokens(std::size_t heads, std::size_t total_tokens) noexcept {
  constexpr std::size_t kRows = 192;  // rows of a product: their scores and keys fit a private cache
  return std::min(std::clamp(std::bit_floor(kRows / std::min(heads, kRows)), std::size_t{16}, std::size_t{128}),
                  total_tokens);
}

AttentionBlock::Products AttentionBlock::compile(std::size_t rows, std::size_t width) const {
  Products made;
  made.width = width;
  const std::size_t head_dim = layout_->head_dim();
  made.scores = engine_->product({.m = rows, .n = width, .k = head_dim}, layout_->keys());
  if (made.scores == nullptr) return made;  // without this product, only whole chunks are used
  const auto mixes = [&](std::size_t keys, bool accumulate) {
    std::vector<std::shared_ptr<const Product>> list;
    for (std::size_t slice = 0; slice < layout_->slices(); ++slice) {
      const ProductShape shape{.m = rows, .n = layout_->slice_channels(slice), .k = keys, .accumulate = accumulate};
      list.push_back(engine_->product(shape, layout_->values(slice)));
    }
    return list;
  };
  made.first_mix = mixes(width, false);
  made.later_mix = mixes(width, true);
  if (std::ranges::count(made.first_mix, nullptr) + std::ranges::count(made.later_mix, nullptr) != 0)
    made.scores = nullptr;
  return made;
}

const AttentionBlock::Products& AttentionBlock::products(bool last_block, std::size_t width) const noexcept {
  const Products& exact = products_[last_block][width / StatesLayout::kWidthStep - 1];
  return exact.scores != nullptr ? exact : products_[last_block].back();
}

std::size_t AttentionBlock::scratch_bytes() const noexcept {
  const std::size_t rows = heads_ * height_, item = item_size(engine_->type());
  return rows * (layout_->head_dim() * (item + 4) + StatesLayout::kChunk * (4 + 2) + (2 + kSumLanes) * sizeof(float)) +
         2 * height_ * sizeof(std::size_t) + 10 * 64;
}

AttentionBlock::Rows AttentionBlock::carve(std::size_t height, void* scratch) const noexcept {
  auto* at = static_cast<std::byte*>(scratch);
  const auto take = [&at](std::size_t bytes) { return std::exchange(at, at + round_up(bytes, 64)); };
  const std::size_t rows = heads_ * height, item = item_size(engine_->type());
  Rows carved{};
  carved.height = height;
  carved.q = take(rows * layout_->head_dim() * item);
  carved.scores = reinterpret_cast<float*>(take(rows * StatesLayout::kChunk * sizeof(float)));
  carved.p =
      engine_->type() == DType::kF32 ? static_cast<void*>(carved.scores) : take(rows * StatesLayout::kChunk * item);
  carved.mix = reinterpret_cast<float*>(take(rows * layout_->head_dim() * sizeof(float)));
  carved.largest = reinterpret_cast<float*>(take(rows * sizeof(float)));
  carved.sum = reinterpret_cast<float*>(take(rows * kSumLanes * sizeof(float)));
  carved.decrease = reinterpret_cast<float*>(take(rows * sizeof(float)));
  carved.begin = reinterpret_cast<std::size_t*>(take(height * sizeof(std::size_t)));
  carved.end = reinterpret_cast<std::size_t*>(take(height * sizeof(std::size_t)));
  return carved;
}

template <class T>
void AttentionBlock::gather(const QueryBlock& block, const Rows& rows) const noexcept {
  const std::size_t head_dim = layout_->head_dim();
  auto* to = static_cast<T*>(rows.q);
  for (std::size_t head = 0; head < heads_; ++head) {
    narrow(block.q + head * block.head_stride, block.tokens * head_dim, to);
    std::fill(to + block.tokens * head_dim, to + rows.height * head_dim, T{});
    to += rows.height * head_dim;
  }
}

/// Returns the keys of a run that a token reads.
AttentionBlock::KeyRange AttentionBlock::keys_read(const KeyRun& run, std::size_t position) const noexcept {
  const auto key = [&](std::size_t row) { return std::min(run.count, row - std::min(row, run.position)); };
  const std::size_t oldest = oldest_row(position, rule_.window, rule_.chunk, rule_.first_position);
  if (rule_.settling.step == 0) return {key(oldest), run.causal ? key(position + 1) : run.count};
  const std::size_t settled = rule_.settling.before(position);
  return run.causal ? KeyRange{key(settled), key(position + 1)} : KeyRange{0, key(settled)};
}

/// Returns the input of the online softmax for this block's scores against `run`.
ScoreTile AttentionBlock::tile_of(const QueryBlock& block, const KeyRun& run, std::size_t width,
                                  const Rows& rows) const noexcept {
  for (std::size_t token = 0; token < rows.height; ++token) {
    const KeyRange read = keys_read(run, block.position + token);
    rows.begin[token] = std::min(read.begin, width);  // `width` limits only unused rows beyond the last token
    rows.end[token] = std::min(read.end, width);
  }
  return {.bf16 = engine_->type() == DType::kBF16,
          .rows = heads_ * rows.height,
          .height = rows.height,
          .width = width,
          .scores = rows.scores,
          .p = rows.p,
          .begin = rows.begin,
          .end = rows.end,
          .scale = scale_,
          .inverse_cap = inverse_cap_,
          .largest = rows.largest,
          .sum = rows.sum,
          .decrease = rows.decrease};
}

void AttentionBlock::rescale_mix(const Rows& rows) const noexcept {
  const std::size_t count = heads_ * rows.height;
  float* mix = rows.mix;
  for (std::size_t slice = 0; slice < layout_->slices(); ++slice) {
    loops().rescale_rows(mix, rows.decrease, count, layout_->slice_channels(slice));
    mix += count * layout_->slice_channels(slice);
  }
}

bool AttentionBlock::mix(const Products& products, const KeyRun& run, bool first, std::size_t worker,
                         const Rows& rows) const noexcept {
  if (!first) rescale_mix(rows);
  bool done = true;
  float* to = rows.mix;
  for (std::size_t slice = 0; slice < layout_->slices(); ++slice) {
    const Product& product = *(first ? products.first_mix : products.later_mix)[slice];
    done &= product.run(worker, {.x = rows.p, .packed = layout_->values_at(run.chunk, slice), .out = to});
    to += heads_ * rows.height * layout_->slice_channels(slice);
  }
  return done;
}

void AttentionBlock::finish(const QueryBlock& block, const Rows& rows) const noexcept {
  const bool bf16 = engine_->type() == DType::kBF16;
  const std::size_t head_dim = layout_->head_dim(), item = item_size(engine_->type());
  const float* mix = rows.mix;
  for (std::size_t slice = 0; slice < layout_->slices(); ++slice) {
    const std::size_t channels = layout_->slice_channels(slice);
    for (std::size_t head = 0; head < heads_; ++head) {
      auto* to = static_cast<std::byte*>(block.out) + (head * head_dim + slice * StatesLayout::kSlice) * item;
      for (std::size_t token = 0; token < block.tokens; ++token, to += block.out_stride * item) {
        const std::size_t row = head * rows.height + token;
        loops().divide_row(mix + row * channels, rows.sum + row * kSumLanes, channels, to, bf16);
      }
    }
    mix += heads_ * rows.height * channels;
  }
}

/// Sets the running values to those of no keys. A head's sink is a first key without a value.
void AttentionBlock::begin(const QueryBlock& block, const Rows& rows) const noexcept {
  std::fill_n(rows.largest, heads_ * rows.height, kNothing);
  std::fill_n(rows.sum, heads_ * rows.height * kSumLanes, 0.0F);
  if (block.sinks == nullptr) return;
  for (std::size_t row = 0; row < heads_ * rows.height; ++row) {
    rows.largest[row] = block.sinks[row / rows.height] * sink_scale_;
    rows.sum[row * kSumLanes] = 1;
  }
}

bool AttentionBlock::run(const QueryBlock& block, const std::vector<KeyRun>& runs, std::size_t worker,
                         void* scratch) const noexcept {
  const Rows rows = carve(block.tokens == tokens_ ? height_ : last_height_, scratch);
  if (engine_->type() == DType::kBF16)
    gather<std::uint16_t>(block, rows);
  else
    gather<float>(block, rows);
  begin(block, rows);
  bool done = true, first = true;
  for (const KeyRun& run : runs) {
    const std::size_t needed = keys_read(run, block.position + block.tokens - 1).end;
    if (needed == 0 || keys_read(run, block.position).begin == run.count) continue;
    const Products& chosen = products(block.tokens != tokens_, round_up(needed, StatesLayout::kWidthStep));
    done &= chosen.scores->run(worker, {.x = rows.q, .packed = run.chunk, .out = rows.scores});
    loops().soften(tile_of(block, run, chosen.width, rows));
    done &= mix(chosen, run, first, worker, rows);
    first = false;
  }
  finish(block, rows);
  return done;
}

}  // namespace kvs::cpu
