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

/// Runs `tokens` from position 0 through a fresh cache, cut where the cache has to act and into groups of at most
/// `group` tokens. The cuts change results by rounding alone.
/// @param use  called with each finished group, in order, and the position of its first token
CacheReport run_cached(Decoder& decoder, Cache& cache, std::span<const std::int32_t> tokens, std::size_t group,
                       const std::function<void(const ResidualStream&, std::size_t)>& use);

}  // namespace kvs
