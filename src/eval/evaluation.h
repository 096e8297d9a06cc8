#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eval/cached_run.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"

namespace kvs {

/// The full cache on the same documents.
struct FullReference {
  PerplexitySum sum;
  Divergence divergence;  // of the other cache's predictions from this one's
  double seconds = 0;     // of the forward passes
};

/// A cache at work on some documents, beside the full cache where that was asked for.
struct Evaluation {
  PerplexitySum sum;
  CacheReport cache;  // bytes of the document that held most, compressions of all, seconds of all
  std::size_t tokens = 0;
  std::optional<FullReference> full;
};

/// @param make     a fresh cache for a document
/// @param compare  also run the full cache: NLL, KL divergence and agreement per token, one more pass a document
/// @param done     called after each document with the number of documents done
Evaluation evaluate(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                    const std::function<Cache()>& make, bool compare, const std::function<void(std::size_t)>& done);

}  // namespace kvs
