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
  Lanes best = splat(kNothing);
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) best = larger(load(values + at), best);
  if (at < count) best = larger(load_part(values + at, count - at, kNothing), best);
  return largest(best);
}

/// p[i] = 2^((scores[i] − base) · scale) for i < count, 0 for the rest of `width`. Returns Σ p by lane. p may be
/// scores.
template <class T>
Lanes exponentiate(const float* scores, std::size_t count, std::size_t width, float base, float scale, T* p) {
  Lanes sum{};
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    const Lanes value = exp2((load(scores + at) - base) * scale);
    sum += value;
    store_fast(p + at, value);
  }
  if (at < count) {
    const Lanes value = exp2((load_part(scores + at, count - at, kNothing) - base) * scale);  // 2^−∞ = 0
    sum += value;
    store_fast(p + at, value);
    at += kLanes;
  }
  for (; at < width; at += kLanes) store_fast(p + at, Lanes{});
  return sum;
}

/// to[i] = from[i] · factor in T.
template <class T>
void scale_row(const float* from, float factor, std::size_t count, T* to) {
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) store(to + at, load(from + at) * factor);
  if (at < count) store_part(to + at, load_part(from + at, count - at) * factor, count - at);
}

}  // namespace

/// One block's working set; a thread's private cache holds it. R rows = heads · height.
struct AttentionBlock::Rows {
  std::size_t height;
  void* q;          // [R, head_dim] in the compute type
  float* scores;    // [R, width]
  void* p;          // [R, width] in the compute type: scores itself in f32
  float* mix;       // [slice][R, channels]
  float* largest;   // [R] running
  Lanes* sum;       // [R] running, by lane: the lanes are added at the end only
  float* decrease;  // [R] of the present run: correction of what came before
};

AttentionBlock::AttentionBlock(ProductEngine& engine, const StatesLayout& layout, std::size_t heads, std::size_t tokens,
                               std::size_t total_tokens, const ScoreRule& rule)
    : engine_(&engine),
      layout_(&layout),
      heads_(heads),
      tokens_(tokens),
      height_(round_up(tokens, kHeightStep)),
      scale_((rule.softcap > 0 ? rule.softcap : rule.scale) * 0x1.715476p0F),
      inverse_cap_(rule.softcap > 0 ? rule.scale / rule.softcap : 0),
      window_(rule.window) {
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
  return rows *
             (layout_->head_dim() * (item + 4) + StatesLayout::kChunk * (4 + 2) + 2 * sizeof(float) + sizeof(Lanes)) +
         8 * 64;
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
  carved.sum = reinterpret_cast<Lanes*>(take(rows * sizeof(Lanes)));
  carved.decrease = reinterpret_cast<float*>(take(rows * sizeof(float)));
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

std::size_t AttentionBlock::keys_read(const QueryBlock& block, const KeyRun& run, std::size_t row, std::size_t width,
                                      const Rows& rows) noexcept {
  if (!run.causal) return run.count;
  const std::size_t token = block.first_token + row % rows.height;
  const std::size_t keys = token < run.first_token ? 0 : std::min(run.count, token - run.first_token + 1);
  return std::min(keys, width);  // binds only in rows beyond the last token, whose results are not used
}

/// True if not even the block's first query reads the run's last key.
bool AttentionBlock::outside_window(const QueryBlock& block, const KeyRun& run) const noexcept {
  return window_ > 0 && run.position + run.count + window_ <= block.position + 1;
}

/// Caps the scores and gives keys that lie before a row's window a score of −∞.
void AttentionBlock::reshape_scores(const QueryBlock& block, const KeyRun& run, std::size_t width,
                                    const Rows& rows) const noexcept {
  const std::size_t count = heads_ * rows.height;
  for (std::size_t row = 0; row < count; ++row) {
    float* scores = rows.scores + row * width;
    if (inverse_cap_ > 0)
      for (std::size_t at = 0; at < width; at += kLanes) store(scores + at, tanh(load(scores + at) * inverse_cap_));
    const std::size_t begin = block.position + row % rows.height + 1;  // of what lies after the row's own position
    if (window_ > 0 && begin > window_ + run.position)
      std::fill_n(scores, std::min(begin - window_ - run.position, width), kNothing);
  }
}

template <class T>
void AttentionBlock::soften(const QueryBlock& block, const KeyRun& run, std::size_t width,
                            const Rows& rows) const noexcept {
  const std::size_t count = heads_ * rows.height;
  for (std::size_t row = 0; row < count; ++row) {
    const float before = rows.largest[row];
    const float found = largest_of(rows.scores + row * width, keys_read(block, run, row, width, rows));
    const float now = found > before ? found : before;
    rows.largest[row] = now;
    // While every score so far is −∞ nothing is subtracted: −∞ − −∞ would be NaN.
    rows.decrease[row] = before - (now == kNothing ? 0.0F : now);
  }
  for (std::size_t row = 0; row < count; row += kLanes)
    store(rows.decrease + row, exp2(load(rows.decrease + row) * scale_));
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t keys = keys_read(block, run, row, width, rows);
    const float base = rows.largest[row] == kNothing ? 0.0F : rows.largest[row];
    T* p = static_cast<T*>(rows.p) + row * width;
    const Lanes fresh = exponentiate(rows.scores + row * width, keys, width, base, scale_, p);
    rows.sum[row] = rows.sum[row] * rows.decrease[row] + fresh;
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
        scale_row(mix + row * channels, static_cast<float>(1.0 / sum_of(rows.sum[row])), channels, to);
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
  std::fill_n(rows.sum, heads_ * rows.height, Lanes{});
  const std::size_t end = block.first_token + block.tokens;
  bool done = true, first = true;
  for (const KeyRun& run : runs) {
    if (outside_window(block, run)) continue;
    if (run.causal && run.first_token >= end) break;
    const std::size_t needed = run.causal ? std::min(run.count, end - run.first_token) : run.count;
    const Products& chosen = products(block.tokens != tokens_, round_up(needed, StatesLayout::kWidthStep));
    done &= engine_->run(*chosen.scores, worker, {.x = rows.q, .packed = run.chunk, .out = rows.scores});
    if (window_ > 0 || inverse_cap_ > 0) reshape_scores(block, run, chosen.width, rows);
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
