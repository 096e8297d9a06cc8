// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "eval/trace.h"
#include "results/trace.h"

namespace kvs::inline eval {

/// Returns Σ sums / Σ tokens over prompts, with the 95 % interval of a ratio of means by Student's t over prompts
/// (Cochran, Sampling Techniques, 1977, equation 6.13 without the correction for finite populations).
/// @param sums, tokens  [prompt], at least one; tokens above 0
PromptMean mean_per_token(std::span<const double> sums, std::span<const double> tokens);

/// The measures of traces. Means of losses and of equal first choices weigh a prompt by its tokens. Means of lengths
/// weigh all prompts alike.
/// @param prompts, outcomes  [prompt], at least one;  @param count  most tokens of a continuation
TraceQuality trace_quality(std::span<const TokenIds> prompts, std::span<const TraceOutcome> outcomes,
                           const ModelConfig& model, std::size_t count);

/// The seconds of a run.
TraceTimes trace_times(const TraceRun& run);
/// The file of the traces that a result is measured on.
TraceFile trace_file(const TraceResult& result, std::span<const TokenIds> prompts,
                     std::span<const TraceOutcome> outcomes);

}  // namespace kvs::inline eval
