// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/divergence.h"
#include "results/head.h"

namespace kvs::inline results {

inline constexpr std::int64_t kMostTraceTokens = std::int64_t{1} << 24;

/// How the tokens of traces are chosen.
struct TraceSettings {
  std::size_t tokens = 0;                     // most tokens of a continuation
  double temperature = 0;                     // 0: the most probable token
  std::optional<std::uint64_t> seed = {};     // of the random numbers; absent without a temperature
  std::vector<std::int32_t> end_tokens = {};  // that end a continuation; ascending

  static void fields(auto& settings, auto&& field) {
    field("tokens", settings.tokens)("temperature", settings.temperature);
    field.absent_or("seed", settings.seed);
    field("end_tokens", settings.end_tokens);
  }
  static void check(const TraceSettings& settings, const JsonCursor& json);
};

/// A prompt and its continuation by the full cache.
struct Trace {
  std::vector<std::int32_t> prompt, ids;
  bool ended = false;  // true if the last id ends the text

  static void fields(auto& trace, auto&& field) {
    field("prompt", trace.prompt)("ids", trace.ids)("ended", trace.ended);
  }
};

/// Where prompts come from.
struct PromptRecord {
  std::vector<std::string> text_sha256;  // one for each file
  std::string prompts_sha256;            // of the prompts' ids
  BosRecord bos = {};
  std::optional<std::string> chat = {};  // the chat format that prompts are written in

  static void fields(auto& prompts, auto&& field) {
    field("text_sha256", prompts.text_sha256)("prompts_sha256", prompts.prompts_sha256);
    field.absent_or("bos", prompts.bos);
    field.absent_or("chat", prompts.chat);
  }
};

/// The file of `kvcalibrate eval --trace-out`.
struct TraceFile {
  std::string format = "kvspectrum-traces";
  std::int64_t version = 1;
  TraceSettings settings = {};
  PromptRecord prompts = {};
  std::vector<Trace> traces = {};
  std::string dtype = {};
  ModelRecord model = {};
  std::string command = {}, tool_version = {};

  static void fields(auto& file, auto&& field) {
    field("format", file.format)("version", file.version)("settings", file.settings);
    field.inlined(file.prompts);
    field("traces", file.traces)("dtype", file.dtype)("model", file.model)("command", file.command)("tool_version",
                                                                                                    file.tool_version);
  }
  static void check(const TraceFile& file, const JsonCursor& json);
};

/// A mean over prompts.
struct PromptMean {
  double mean = 0;
  draw::Interval interval = {};  // 95 %, by Student's t over prompts; absent for one prompt

  static void fields(auto& of, auto&& field) {
    field("mean", of.mean);
    field.absent_or("interval", of.interval);
  }
};

/// Continuations of one cache.
struct ContinuationLengths {
  double tokens = 0;  // mean over prompts
  double ended = 0;   // share of the prompts

  static void fields(auto& lengths, auto&& field) { field("tokens", lengths.tokens)("ended", lengths.ended); }
};

/// How a cache continues prompts by itself, compared with the full cache.
struct OwnContinuations {
  PromptMean same_tokens =
      {};  // tokens before the first that differs from the trace; all tokens of an equal continuation
  std::optional<std::size_t> median = {};  // tokens after which half of the prompts have diverged; null: more have not
  double undiverged = 0;                   // share of the prompts whose continuation equals the trace
  std::pair<double, double> undiverged_interval = {0, 1};  // 95 % (Wilson)
  ContinuationLengths lengths = {}, full_lengths = {};

  static void fields(auto& own, auto&& field) {
    field("same_tokens", own.same_tokens)("median", own.median)("undiverged", own.undiverged)(
        "undiverged_interval", own.undiverged_interval)("lengths", own.lengths)("full_lengths", own.full_lengths);
  }
};

/// The measures of one prompt.
struct TraceSample {
  std::size_t prompt_tokens = 0, tokens = 0;  // tokens: of the trace
  bool ended = false;
  double kl = 0, top1 = 0, nll = 0, full_nll = 0;  // means over the trace's tokens
  std::size_t same_tokens = 0, own_tokens = 0;     // own: of the cache's own continuation
  bool own_ended = false;

  bool diverged() const noexcept { return same_tokens < tokens || same_tokens < own_tokens; }
  static void fields(auto& sample, auto&& field) {
    field("prompt_tokens", sample.prompt_tokens)("tokens", sample.tokens)("ended", sample.ended)("kl", sample.kl)(
        "top1", sample.top1)("nll", sample.nll)("full_nll", sample.full_nll)("same_tokens", sample.same_tokens)(
        "own_tokens", sample.own_tokens)("own_ended", sample.own_ended);
  }
  static void check(const TraceSample& sample, const JsonCursor& json);
};

/// The predictions of a cache for the tokens that the full cache generated, and the cache's own continuations.
struct TraceQuality {
  std::size_t tokens_scored = 0;
  PromptMean kl = {};              // nats per token
  PromptMean top1 = {};            // share of tokens whose first choice equals the full cache's
  PromptMean nll_difference = {};  // nats per token of the trace, less the full cache's
  double full_nll = 0;             // nats per token
  DivergenceTail tail = {};        // `largest` names the prompt, and a position in prompt and trace
  DivergenceCurves curves = {};    // positions are those of the generated tokens, from 0
  OwnContinuations own = {};
  double bytes_ratio = 0;  // mean over prompts of the most stored bytes, as a share of the full cache
  std::size_t compressions = 0;
  std::vector<TraceSample> samples = {};

  static void fields(auto& quality, auto&& field) {
    field("tokens_scored", quality.tokens_scored)("kl", quality.kl)("top1", quality.top1)(
        "nll_difference", quality.nll_difference)("full_nll", quality.full_nll)("tail", quality.tail)(
        "curves", quality.curves)("own", quality.own)("bytes_ratio", quality.bytes_ratio)(
        "compressions", quality.compressions)("samples", quality.samples);
  }
  static void check(const TraceQuality& quality, const JsonCursor& json);
};

/// Seconds of a run, without reading the model.
struct TraceTimes {
  double trace = 0, scored = 0, own = 0;  // the full cache's continuations; both passes over them; the cache's own

  static void fields(auto& times, auto&& field) {
    field("trace", times.trace)("scored", times.scored)("own", times.own);
  }
};

/// The result of `kvcalibrate eval --trace`.
struct TraceResult {
  std::string method, prefill;
  TraceSettings settings = {};
  TraceQuality quality;
  std::optional<Json> parameters = {};
  PromptRecord prompts = {};
  std::string trace_sha256;  // of the traces' ids
  std::string dtype = {};
  ModelRecord model = {};
  std::string command = {}, tool_version = {};
  std::optional<std::size_t> shared_bytes = {};
  InputDigests inputs = {};
  std::optional<TraceTimes> seconds = {};

  static void fields(auto& result, auto&& field) {
    field("method", result.method)("prefill", result.prefill)("trace", result.settings);
    field.inlined(result.quality);
    field.absent_or("parameters", result.parameters);
    field.inlined(result.prompts);
    field("trace_sha256", result.trace_sha256)("dtype", result.dtype)("model", result.model)("command", result.command)(
        "tool_version", result.tool_version);
    field.absent_or("shared_bytes", result.shared_bytes);
    field.inlined(result.inputs);
    field.absent_or("seconds", result.seconds);
  }
  static void check(const TraceResult& result, const JsonCursor& json) { TraceQuality::check(result.quality, json); }
};

std::string to_text(const TraceResult& result);
/// Draws the share of prompts that have not diverged by tokens, the divergence by position, and its histogram.
draw::Chart trace_chart(const std::string& heading, const TraceQuality& quality);

}  // namespace kvs::inline results
