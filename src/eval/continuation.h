// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/token_choice.h"
#include "model/decoder.h"

namespace kvs::inline eval {

using TokenIds = std::vector<std::int32_t>;

/// The tokens that a model adds to a prompt.
struct Continuation {
  TokenIds ids;
  bool ended = false;  // true if the last id ends the text
};

struct ContinuationPlan {
  std::size_t count = 0;  // most tokens of a continuation, at least 1
  TokenIds end_tokens;    // that end a text; ascending
  TokenChoice choice = {};
  std::size_t length = 0;  // tokens of the run's longest prompt and of a continuation: rotations use their positions
};

/// Returns true if sequences can take a step together. They cannot in a model with a recurrent block, an index of
/// tokens, streams side by side or a query temperature. A batch would share their states or factors.
bool takes_batches(const ModelConfig& model);

/// Continues prompts token by token, each with a cache of its own. The prompts are read one by one; then all sequences
/// that have not ended take each step together, as one batch, if takes_batches(). A batch changes results by rounding.
/// Memory: the caches of all prompts, and the logits of a step.
/// @param first  number of prompts of the run before these: the sequence of TokenPlace
/// @param make   creates the cache of a prompt
/// @throws Error kData for a NaN or an infinity
std::vector<Continuation> continue_prompts(Decoder& decoder, std::span<const TokenIds> prompts, std::size_t first,
                                           const std::function<Cache(const TokenIds&)>& make,
                                           const ContinuationPlan& plan);

}  // namespace kvs::inline eval
