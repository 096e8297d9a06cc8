// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "model/decoder.h"
#include "model/recorded_states.h"

namespace kvs::inline eval {

/// Memory and times of a cache while a document went through it.
struct CacheReport {
  CacheBytes peak, end;  // peak: the most stored at any time
  std::size_t compressions = 0;
  std::size_t tokens = 0, decoded = 0;  // in total; processed one at a time
  // Seconds of the forward passes without scoring: in total; for the decoded tokens; within compressions.
  double seconds = 0, decode_seconds = 0, compression_seconds = 0;

  /// Adds another document's report; the bytes are the maximum over documents.
  CacheReport& operator+=(const CacheReport& other);
};

/// The first tokens of a document, with their states in a pass in which they attend as in the cache.
struct RecordedStart {
  const RecordedStates* states = nullptr;
  std::size_t tokens = 0;  // no more than a whole prefix
};

struct RunCuts {
  std::size_t group = LayerCache::kUnlimited;  // maximum number of tokens in a group
  std::size_t decode = 0;                      // number of tokens at the end that are processed one at a time
  std::size_t positions = 0;                   // that rotations use; 0: as the cache computes for the tokens
  RecordedStart start = {};                    // tokens that the run takes from it; `use` is not called with them
  StateHook* hook = nullptr;                   // sees the states of the other tokens
};

/// Runs `tokens` from position 0 through a fresh cache, cut into groups and where the cache has to act. The cuts change
/// results only by rounding.
/// @param use  called with each finished group, in order, and the position of its first token
/// @throws Error kData for a NaN or an infinity; names layer, head and token if a pass without the cache has it too
CacheReport run_cached(Decoder& decoder, Cache& cache, std::span<const std::int32_t> tokens, const RunCuts& cuts,
                       const std::function<void(const ResidualStream&, std::size_t)>& use);

}  // namespace kvs::inline eval
