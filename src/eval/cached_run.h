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
  std::size_t tokens = 0, decoded = 0;  // in all; those that went one at a time
  // Of the forward passes, without the scoring: in all; of the decoded tokens; within compressions.
  double seconds = 0, decode_seconds = 0, compression_seconds = 0;

  /// Adds what another document did; the bytes are those of the document that held most.
  CacheReport& operator+=(const CacheReport& other);
};

struct RunCuts {
  std::size_t group = LayerCache::kUnlimited;  // tokens at most in a group
  std::size_t decode = 0;                      // so many at the end go one at a time
  std::size_t positions = 0;                   // that rotations use; 0: as the cache says for so many tokens
};

/// Runs `tokens` from position 0 through a fresh cache, cut where the cache has to act and into groups. The cuts change
/// results by rounding alone.
/// @param use  called with each finished group, in order, and the position of its first token
/// @throws Error kData for a NaN or an infinity, naming layer, head and token where a pass without the cache has it,
/// too
CacheReport run_cached(Decoder& decoder, Cache& cache, std::span<const std::int32_t> tokens, const RunCuts& cuts,
                       const std::function<void(const ResidualStream&, std::size_t)>& use);

}  // namespace kvs
