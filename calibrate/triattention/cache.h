// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "caches/kv_types.h"
#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "calibrate/triattention/future_scores.h"

namespace kvs::inline calibrate {

struct TriattentionOptions {
  std::size_t cache_size = 0;     // at least interval + sinks + recent + 1
  std::size_t interval = 128;     // β
  std::size_t sinks = 0;          // first tokens, which stay
  std::size_t recent = 0;         // last tokens, which stay
  std::size_t horizon = 1 << 16;  // largest δ

  std::size_t kept() const noexcept { return cache_size - interval; }  // B
};

/// Reads the options of the selected layer. @throws Error like Parameters
TriattentionOptions triattention_options(Parameters& parameters);

/// Just before a token that finds `cache_size` tokens, each KV head keeps the `cache_size` − `interval` best of them.
/// These are the first `sinks`, the last `recent`, and the others with the largest scores (FutureScores; the first of
/// equals). Keys keep their positions. O(cache_size · head_dim · query heads) per `interval` tokens, on the host.
/// Source: Mao et al. (2026), TriAttention, arXiv:2604.04921, section 4. Deviations: the paper counts the B tokens
/// after an eviction, and the cache holds up to B + β; here `cache_size` is B + β, the most that it holds. The authors'
/// program keeps the prompt, and in some modes shares one choice of tokens between layers; the paper's equations are by
/// head, as here (`per_layer_perhead_pruning` there). The query at p is that of the last token: δ = 1 is the next.
/// @param scores  nullptr: attend() throws, since the statistics are missing
std::unique_ptr<LayerCache> make_triattention_cache(const TriattentionOptions& options, const KvTypes& types,
                                                    std::shared_ptr<const FutureScores> scores);

}  // namespace kvs::inline calibrate
