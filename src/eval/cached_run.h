#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "model/decoder.h"

namespace kvs {

/// What a cache held and did while a document went through it.
struct CacheReport {
  CacheBytes peak, end;  // peak: the most stored at any time
  std::size_t compressions = 0;
  double seconds = 0;  // of the forward passes, without the scoring
};

struct RunCuts {
  std::size_t group = LayerCache::kUnlimited;  // tokens at most in a group
  std::size_t positions = 0;                   // that rotations use; 0: as the cache says for so many tokens
};

/// Runs `tokens` from position 0 through a fresh cache, cut where the cache has to act and into groups. The cuts change
/// results by rounding alone.
/// @param use  called with each finished group, in order, and the position of its first token
CacheReport run_cached(Decoder& decoder, Cache& cache, std::span<const std::int32_t> tokens, const RunCuts& cuts,
                       const std::function<void(const ResidualStream&, std::size_t)>& use);

}  // namespace kvs
