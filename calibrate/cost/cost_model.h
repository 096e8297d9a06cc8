// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "caches/slot_cache.h"
#include "model/config.h"

namespace kvs::inline calibrate {

// The costs of the papers' methods, computed from a model's shapes alone.

/// Geometries of real models by short names. No RoPE, no windows.
std::span<const ModelConfig> known_geometries();
/// @throws Error kUsage with the known names.
const ModelConfig& known_geometry(std::string_view name);

/// FreqKV's and dropping's schedule: compressions of T tokens, ⌈(T − cache_size)/(N − L)⌉, 0 while all have a slot.
std::size_t compressions(const SlotOptions& slots, std::size_t tokens) noexcept;
/// Pairs of query and key that FreqKV counts: cache_size² of the first group of tokens, q(S + L + q) of each later one,
/// q tokens until the cache is full; T² where nothing is compressed.
double attention_pairs(const SlotOptions& slots, std::size_t tokens) noexcept;
/// FLOPs of a prefill as FreqKV counts: 2(P·T + 2·A·H·d·layers), A = `pairs` (T² for the full cache).
double prefill_flops(const ModelConfig& model, std::size_t tokens, double pairs);
/// FLOPs of FreqKV's transforms: for each compression 2·G·d channels in every layer, N·log2 N each.
double transform_flops(const ModelConfig& model, const SlotOptions& slots, std::size_t tokens);

/// Tokens that LagKV holds of T: S + ⌊rL⌋(⌊(T − S)/L⌋ − 1) + L + (T − S) mod L; all below S + 2L.
std::size_t lagkv_tokens(std::size_t tokens, std::size_t sinks, std::size_t lag, double ratio) noexcept;

/// The size of FAEDKV's cache of a prefix: the rows at both ends, and the bins of the lowest chunks for the N tokens
/// between them.
struct SpectrumSize {
  std::size_t sinks = 10, recent = 50, chunks = 22;

  /// Returns the number of bins, of ⌊N/2⌋ + 1, in the ⌊share · C + ½⌋ lowest chunks (kept_count()).
  std::size_t kept_bins(std::size_t tokens, double share) const noexcept;
  /// Returns the size in tokens: a complex bin takes the bytes of two tokens. Without a middle, all tokens are kept.
  std::size_t size(std::size_t tokens, double share) const noexcept;
};

}  // namespace kvs::inline calibrate
