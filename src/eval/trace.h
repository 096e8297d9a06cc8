// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eval/continuation.h"
#include "eval/evaluation.h"

namespace kvs::inline eval {

/// How traces are made, and which cache is tested on them.
struct TracePlan {
  std::function<Cache(const TokenIds&prompt)> make, make_full;
  ContinuationPlan continuation;
  std::size_t together = 1;  // prompts that are continued as one batch
};

/// The measures of a cache on one prompt.
struct TraceOutcome {
  Continuation trace;  // by the full cache
  Continuation own;    // by the tested cache
  /// Predictions of the trace's tokens with the tested cache. `parts` are of trace_parts().
  Evaluation scored;
};

/// Outcomes of all prompts, and the seconds of their continuations.
struct TraceRun {
  std::vector<TraceOutcome> outcomes;
  double trace_seconds = 0, own_seconds = 0;
};

/// Returns where the parts of a continuation of at most `count` tokens end, ascending; at most 32 parts.
std::vector<std::size_t> trace_parts(std::size_t count);

/// Evaluates a cache's predictions of the tokens of a trace: the cache reads the trace as eval reads a text, and every
/// token after the prompt is scored.
Evaluation evaluate_trace(Decoder& decoder, const TokenIds& prompt, const TokenIds& ids, const TracePlan& plan);

/// Returns the number of prompts that run as one batch, so that their full caches take at most 2 GiB: at most 16.
/// @param length  tokens of the longest prompt and of a continuation
std::size_t trace_batch(const ModelConfig& model, std::size_t length);

/// Continues every prompt with the full cache, scores the tested cache on these traces, and continues every prompt with
/// the tested cache. With a temperature, both choose with the same random numbers (choose_token()).
/// @param traces   of a former run, [prompt]; empty: they are made here
/// @param done     called with the number of prompts done
/// @param journal  receives finished batches; batches that it already holds are not run again
/// @param ranks    share the batches, and rank 0 has the result
TraceRun run_traces(Decoder& decoder, std::span<const TokenIds> prompts, std::span<const Continuation> traces,
                    const TracePlan& plan, const std::function<void(std::size_t)>& done, Journal* journal,
                    Ranks& ranks);

/// Returns the FLOPs of run_traces() for a prompt. @param length  tokens of the prompt and its continuation
double trace_flops(const ModelConfig& model, std::size_t length);

}  // namespace kvs::inline eval
