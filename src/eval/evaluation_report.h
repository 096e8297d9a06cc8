#pragma once

#include <cstddef>
#include <string>

#include "eval/evaluation.h"
#include "io/json.h"
#include "model/config.h"

namespace kvs {

/// Of the full cache after `tokens` tokens, 2 bytes a value.
double full_cache_bytes(const ModelConfig& model, std::size_t tokens);

/// What an evaluation of documents of `window` tokens found (docs/caches.md), without the times that it took: the same
/// whenever it is run.
Json evaluation_json(const Evaluation& evaluation, const ModelConfig& model, std::size_t window);
/// Adds seconds, rates and the share of the compressions.
void add_times(const Evaluation& evaluation, Json& result);
/// "perplexity 14.2 ± 0.3 (NLL …), × 1.02 of the full cache's (…), KL divergence …", of a result that has `ratio`.
std::string quality_text(const Json& result);
/// What a cache's sequences share, beside what each holds: all of it, and for each token of one document.
std::string shared_bytes_text(std::size_t bytes, std::size_t tokens);
/// Both, in words.
std::string evaluation_summary(const Json& result);

}  // namespace kvs
