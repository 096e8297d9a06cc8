// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/cached_run.h"
#include "results/generation.h"

namespace kvs::inline eval {

struct Generation {
  std::vector<std::int32_t> ids;  // of the continuation
  CacheBytes end;
  std::size_t compressions = 0;
  double prefill_seconds = 0, decode_seconds = 0;  // of the prompt; of the tokens after the first
};

/// Generates the most probable continuation of `prompt`, token by token, with a fresh cache.
/// @param count  tokens to generate, at least 1
/// @param go_on  called with each new token; returns false to stop
Generation generate(Decoder& decoder, Cache& cache, std::span<const std::int32_t> prompt, std::size_t count,
                    const std::function<bool(std::int32_t)>& go_on);

/// Adds the text's ids, the cache's bytes and the rates to a result. @param prompt  of generate()
void add_generation(const Generation& made, std::span<const std::int32_t> prompt, GenerationResult& result);

}  // namespace kvs::inline eval
