#include "kernels/cpu/attention_block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/fast_math.h"

namespace kvs::cpu {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr std::size_t kHeightStep = 16;  // rows per head are rounded up to it, so that few sizes need be compiled

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

float largest_of(const float* values, std::size_t count) {
  const std::size_t whole = count / kLanes * kLanes;
  Lanes best = splat(kNothing);
  for (std::size_t at = 0; at < whole; at += kLanes) best = larger(load(values + at), best);
  return largest(larger(load_part(values + whole, count - whole, kNothing), best));
}

/// p[i] = exp((scores[i] − largest) · scale) for i < count, 0 for the rest of `width`. Returns Σ p. p may be scores.
template <class T>
float exponentiate(const float* scores, std::size_t count, std::size_t width, float largest, float scale, T* p) {
  Lanes sum{};
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    const Lanes value = exp((load(scores + at) - largest) * scale);
    sum += value;
    store(p + at, value);
  }
  if (at < count) {
    const Lanes value = exp((load_part(scores + at, count - at, kNothing) - largest) * scale);  // e^−∞ = 0
    sum += value;
    store(p + at, value);
    at += kLanes;
  }
  for (; at < width; at += kLanes) store(p + at, Lanes{});
  return static_cast<float>(sum_of(sum));
}

/// to[i] = from[i] · factor in T.
template <class T>
void scale_row(const float* from, float factor, std::size_t count, T* to) {
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) store(to + at, load(from + at) * factor);
  store_part(to + at, load_part(from + at, count - at) * factor, count - at);
}

}  // namespace

/// One block's working set; a thread's private cache holds it. R rows = heads · height.
struct AttentionBlock::Rows {
  std::size_t height;
  void* q;                  // [R, head_dim] in the compute type
  float* scores;            // [R, width]
  void* p;                  // [R, width] in the compute type: scores itself in f32
  float* mix;               // [slice][R, channels]
  float *largest, *sum;     // [R] running
  float *decrease, *fresh;  // [R] of the present run: correction of what came before, and its own sum
};

AttentionBlock::AttentionBlock(ProductEngine& engine, const StatesLayout& layout, std::size_t heads, std::size_t tokens,
                               std::size_t total_tokens, float scale)
    : engine_(&engine),
      layout_(&layout),
      heads_(heads),
      tokens_(tokens),
      height_(round_up(tokens, kHeightStep)),
      scale_(scale) {
  const std::size_t last = total_tokens % tokens == 0 ? tokens : total_tokens % tokens;
  last_height_ = round_up(last, kHeightStep);
  for (std::size_t width = StatesLayout::kWidthStep; width <= StatesLayout::kChunk; width += StatesLayout::kWidthStep) {
    products_[0].push_back(compile(heads * height_, width));
    products_[1].push_back(compile(heads * last_height_, width));
  }
}

std::size_t AttentionBlock::block_tokens(std::size_t heads, std::size_t total_tokens) noexcept {
  constexpr std::size_t kRows = 192;  // of a product: scores of this many rows and their keys fit a private cache
  return std::min(std::clamp(std::bit_floor(kRows / std::min(heads, kRows)), std::size_t{16}, std::size_t{128}),
                  total_tokens);
}

AttentionBlock::Products AttentionBlock::compile(std::size_t rows, std::size_t width) const {
  Products made;
  made.width = width;
  const std::size_t head_dim = layout_->head_dim();
  made.scores = engine_->product({.m = rows, .n = width, .k = head_dim}, layout_->keys());
  if (made.scores == nullptr) return made;  // then only whole chunks are used
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
  return rows * (layout_->head_dim() * (item + 4) + StatesLayout::kChunk * (4 + 2) + 4 * sizeof(float)) + 8 * 64;
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
  carved.sum = reinterpret_cast<float*>(take(rows * sizeof(float)));
  carved.decrease = reinterpret_cast<float*>(take(rows * sizeof(float)));
  carved.fresh = reinterpret_cast<float*>(take(rows * sizeof(float)));
  return carved;
}

template <class T>
void AttentionBlock::gather(const QueryBlock& block, const Rows& rows) const noexcept {
  const std::size_t head_dim = layout_->head_dim();
  auto* to = static_cast<T*>(rows.q);
  for (std::size_t head = 0; head < heads_; ++head) {
    scale_row(block.q + head * block.head_stride, 1.0F, block.tokens * head_dim, to);
    std::fill(to + block.tokens * head_dim, to + rows.height * head_dim, T{});
    to += rows.height * head_dim;
  }
}

template <class T>
void AttentionBlock::soften(const QueryBlock& block, const KeyRun& run, std::size_t width,
                            const Rows& rows) const noexcept {
  const std::size_t count = heads_ * rows.height;
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t token = block.first_token + row % rows.height;
    std::size_t keys = run.count;
    if (run.causal) keys = token < run.first_token ? 0 : std::min(keys, token - run.first_token + 1);
    keys = std::min(keys, width);  // binds only in rows beyond the last token, whose results are not used
    const float* scores = rows.scores + row * width;
    const float before = rows.largest[row], now = std::max(before, largest_of(scores, keys));
    // While every score so far is −∞ nothing is subtracted: −∞ − −∞ would be NaN.
    const float base = now == kNothing ? 0.0F : now;
    const float sum = exponentiate(scores, keys, width, base, scale_, static_cast<T*>(rows.p) + row * width);
    rows.largest[row] = now;
    rows.decrease[row] = (before - base) * scale_;
    rows.fresh[row] = sum;
  }
  for (std::size_t row = 0; row < count; row += kLanes) {
    const Lanes factor = exp(load(rows.decrease + row));
    store(rows.decrease + row, factor);
    store(rows.sum + row, load(rows.sum + row) * factor + load(rows.fresh + row));
  }
}

void AttentionBlock::rescale_mix(const Rows& rows) const noexcept {
  const std::size_t count = heads_ * rows.height;
  float* mix = rows.mix;
  for (std::size_t slice = 0; slice < layout_->slices(); ++slice) {
    const std::size_t channels = layout_->slice_channels(slice);
    for (std::size_t row = 0; row < count; ++row, mix += channels) {
      const float factor = rows.decrease[row];
      if (factor == 1.0F) continue;
      for (std::size_t channel = 0; channel < channels; ++channel) mix[channel] *= factor;
    }
  }
}

bool AttentionBlock::mix(const Products& products, const KeyRun& run, bool first, std::size_t worker,
                         const Rows& rows) const noexcept {
  if (!first) rescale_mix(rows);
  bool done = true;
  float* to = rows.mix;
  for (std::size_t slice = 0; slice < layout_->slices(); ++slice) {
    const Product& product = *(first ? products.first_mix : products.later_mix)[slice];
    done &= engine_->run(product, worker, {.x = rows.p, .packed = layout_->values_at(run.chunk, slice), .out = to});
    to += heads_ * rows.height * layout_->slice_channels(slice);
  }
  return done;
}

template <class T>
void AttentionBlock::finish(const QueryBlock& block, const Rows& rows) const noexcept {
  const std::size_t head_dim = layout_->head_dim();
  const float* mix = rows.mix;
  for (std::size_t slice = 0; slice < layout_->slices(); ++slice) {
    const std::size_t channels = layout_->slice_channels(slice);
    for (std::size_t head = 0; head < heads_; ++head) {
      T* to = static_cast<T*>(block.out) + head * head_dim + slice * StatesLayout::kSlice;
      for (std::size_t token = 0; token < block.tokens; ++token, to += block.out_stride) {
        const std::size_t row = head * rows.height + token;
        scale_row(mix + row * channels, 1.0F / rows.sum[row], channels, to);
      }
    }
    mix += heads_ * rows.height * channels;
  }
}

template <class T>
bool AttentionBlock::run_typed(const QueryBlock& block, const std::vector<KeyRun>& runs, std::size_t worker,
                               const Rows& rows) const noexcept {
  gather<T>(block, rows);
  std::fill_n(rows.largest, heads_ * rows.height, kNothing);
  std::fill_n(rows.sum, heads_ * rows.height, 0.0F);
  const std::size_t end = block.first_token + block.tokens;
  bool done = true, first = true;
  for (const KeyRun& run : runs) {
    if (run.causal && run.first_token >= end) break;
    const std::size_t needed = run.causal ? std::min(run.count, end - run.first_token) : run.count;
    const Products& chosen = products(block.tokens != tokens_, round_up(needed, StatesLayout::kWidthStep));
    done &= engine_->run(*chosen.scores, worker, {.x = rows.q, .packed = run.chunk, .out = rows.scores});
    soften<T>(block, run, chosen.width, rows);
    done &= mix(chosen, run, first, worker, rows);
    first = false;
  }
  finish<T>(block, rows);
  return done;
}

bool AttentionBlock::run(const QueryBlock& block, const std::vector<KeyRun>& runs, std::size_t worker,
                         void* scratch) const noexcept {
  const Rows rows = carve(block.tokens == tokens_ ? height_ : last_height_, scratch);
  return engine_->type() == DType::kBF16 ? run_typed<std::uint16_t>(block, runs, worker, rows)
                                         : run_typed<float>(block, runs, worker, rows);
}

}  // namespace kvs::cpu
