#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor_view.h"
#include "policy/cache_method.h"
#include "policy/token_rows.h"

namespace kvs {

/// kLag: a partition is scaled by the range of the next one. kLocal: by its own. kL2: it is scored by −‖k‖₂ instead
/// (the source leaves layers 0 and 1 alone in that variant; the caller does).
enum class LagkvVariant { kLag, kLocal, kL2 };

struct LagkvOptions {
  std::size_t sinks = 16;  // S: tokens at the start that stay
  std::size_t lag = 128;   // L: tokens of a partition
  double ratio = 0.25;     // r: ⌊rL⌋ of a partition's tokens stay
  LagkvVariant variant = LagkvVariant::kLag;
};

/// The cache at work, which gives what lagkv_keep gives of all states at once: when base + 2L rows are there (base = S
/// at first), the tokens that brought them having attended, rows [base, base + L) are scored against the next L and
/// ⌊rL⌋ of them stay; base grows by as many.
std::unique_ptr<LayerCache> make_lagkv_cache(const LagkvOptions& options, const StateStore& store = {});
extern const CacheMethod kLagkvMethod;

/// Tokens that stay, ascending, for each KV head. Partitions of L tokens follow the sinks; all but the last keep their
/// ⌊rL⌋ best tokens (the first of equal ones), the last partition and the remainder stay; below S + 2L tokens all do.
/// Score = softmax over the partition's tokens of the unbiased standard deviation over channels of the scaled state,
/// of the keys plus of the values; in double.
/// Source: LagKV, section 3. Deviation: a channel that is constant in the reference contributes 0, where the public
/// code divides by zero.
/// @param k, v  [kv_head, token, head_dim], keys after RoPE
/// @throws Error kUsage unless lag ≥ 1 and 0 ≤ ratio ≤ 1; kData if a score is not a number.
std::vector<std::vector<std::size_t>> lagkv_keep(TensorView<const float, 3> k, TensorView<const float, 3> v,
                                                 const LagkvOptions& options);

/// How many of `tokens` tokens lagkv_keep leaves: S + ⌊rL⌋(⌊(T−S)/L⌋ − 1) + L + (T−S) mod L, or T below S + 2L.
std::size_t lagkv_length(std::size_t tokens, const LagkvOptions& options);

/// The largest r = n/L with which at most `budget` of `tokens` tokens stay; none if even n = 0 leaves more. Does not
/// read options.ratio.
std::optional<double> lagkv_ratio(std::size_t tokens, std::size_t budget, const LagkvOptions& options);

}  // namespace kvs
