// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/continuation.h"
#include "results/trace.h"
#include "run/run.h"

namespace kvs::inline run {

/// Prompts, and their traces if a file has them.
struct TraceInput {
  std::vector<TokenIds> prompts;
  std::vector<Continuation> traces = {};  // empty: not made yet
  TraceSettings settings = {};
  PromptRecord record = {};
  std::size_t longest = 0;  // tokens of a prompt

  /// Tokens of the longest prompt and of a continuation.
  std::size_t length() const noexcept { return longest + settings.tokens; }
};

/// Reads the prompts of --prompts, of the texts or of --trace-from, and sets the identity of the run.
/// @throws Error kInput for a damaged file of traces; kConflict if it was made with another model or for other prompts
/// than those of the command
TraceInput read_trace_input(Run& run);

/// SHA-256 of lists of ids and their lengths.
std::string digest_of_lists(std::span<const TokenIds> lists);
std::string digest_of_traces(std::span<const Continuation> traces);

}  // namespace kvs::inline run
