// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/divergence.h"
#include "results/head.h"

namespace kvs::inline results {

/// Perplexity divided by the full cache's perplexity on the same documents.
struct PerplexityRatio {
  std::optional<double> ppl;                               // null if it overflows a double
  double nll_difference = 0;                               // logarithm of the ratio
  std::optional<std::pair<double, double>> interval = {};  // 95 %; absent for one document

  static void fields(auto& ratio, auto&& field) {
    field("ppl", ratio.ppl)("nll_difference", ratio.nll_difference);
    field.absent_or("interval", ratio.interval);
  }
};

/// The results of the full cache on the same documents.
struct FullCacheQuality {
  std::optional<double> ppl;  // null if it overflows a double
  double nll_mean = 0, nll_error = 0;
  std::optional<std::size_t> beyond_context = {};  // the model's context length, if documents exceed it
  std::optional<double> seconds = {};              // time of the forward passes; set only with `times`

  static void fields(auto& full, auto&& field) {
    field("ppl", full.ppl)("nll_mean", full.nll_mean)("nll_error", full.nll_error);
    field.absent_or("beyond_context", full.beyond_context);
    field.absent_or("seconds", full.seconds);
  }
};

/// The difference between the predictions with this cache and with the full cache.
struct CacheLoss {
  FullCacheQuality full;
  PerplexityRatio ratio;
  double kl = 0, kl_error = 0;                  // nats per token
  double top1 = 0;                              // share of tokens whose top-1 prediction equals the full cache's
  std::optional<DivergenceTail> tail = {};      // absent in files of older versions
  std::optional<DivergenceCurves> curves = {};  // absent in files of older versions

  static void fields(auto& loss, auto&& field) {
    field("full", loss.full)("ratio", loss.ratio)("kl", loss.kl)("kl_error", loss.kl_error)("top1", loss.top1);
    field.absent_or("tail", loss.tail);
    field.absent_or("curves", loss.curves);
  }
};

/// The prediction quality of a model with a cache, and the size of the cache (docs/caches.md).
struct CacheQuality {
  std::optional<double> ppl;  // null if it overflows a double
  double nll_mean = 0, nll_error = 0;
  std::string errors_over;  // "documents" or "tokens"
  std::size_t tokens_scored = 0;
  double bytes_per_token = 0, bytes_ratio = 0, bytes_per_token_end = 0;
  std::size_t bytes_allocated = 0, bytes_spare = 0, compressions = 0;
  std::optional<CacheLoss> loss = {};

  static void fields(auto& quality, auto&& field) {
    field("ppl", quality.ppl)("nll_mean", quality.nll_mean)("nll_error", quality.nll_error)(
        "errors_over", quality.errors_over)("tokens_scored", quality.tokens_scored)(
        "bytes_per_token", quality.bytes_per_token)("bytes_ratio", quality.bytes_ratio)(
        "bytes_per_token_end", quality.bytes_per_token_end)("bytes_allocated", quality.bytes_allocated)(
        "bytes_spare", quality.bytes_spare)("compressions", quality.compressions);
    field.inlined("full", quality.loss);
  }
  static void check(const CacheQuality& quality, const JsonCursor& json);
};

/// Times of the forward passes. Rates are null if the measured time is 0.
struct EvaluationTimes {
  double seconds = 0;
  std::optional<double> tokens_per_second;
  std::optional<double> prefill_tokens_per_second = {},
                        decode_tokens_per_second = {};  // absent if there are no such tokens
  std::optional<double> compression_share;

  static void fields(auto& times, auto&& field) {
    field("seconds", times.seconds)("tokens_per_second", times.tokens_per_second);
    field.absent_or("prefill_tokens_per_second", times.prefill_tokens_per_second);
    field.absent_or("decode_tokens_per_second", times.decode_tokens_per_second);
    field("compression_share", times.compression_share);
  }
};

/// How an engine is told to use a cache.
struct EngineUse {
  std::string engine = {}, flags = {};  // of its command line
  std::vector<std::string> notes = {};  // one line each
  std::string exporter = {};            // `kvcalibrate export --to`, for the files that the engine needs

  static void fields(auto& use, auto&& field) {
    field("engine", use.engine)("flags", use.flags)("notes", use.notes)("export", use.exporter);
  }
};

/// The result of `kvcalibrate eval` on texts.
struct EvaluationResult {
  std::string method;
  CacheQuality quality;
  std::optional<Json> parameters = {};
  std::size_t documents = 0, window = 0;
  std::string dtype = {};
  ModelRecord model = {};
  std::vector<std::string> text_sha256 = {};
  BosRecord bos = {};
  std::string command = {}, tool_version = {};
  std::optional<std::size_t> stride = {}, shared_bytes = {};
  std::vector<EngineUse> engines = {};  // that execute the cache; absent in files of older versions
  InputDigests inputs = {};
  std::optional<EvaluationTimes> times = {};

  static void fields(auto& result, auto&& field) {
    field("method", result.method);
    field.inlined(result.quality);
    field.absent_or("parameters", result.parameters);
    field("documents", result.documents)("window", result.window)("dtype", result.dtype)("model", result.model)(
        "text_sha256", result.text_sha256);
    field.absent_or("bos", result.bos);
    field("command", result.command)("tool_version", result.tool_version);
    field.absent_or("stride", result.stride);
    field.absent_or("shared_bytes", result.shared_bytes);
    field.newer("engines", result.engines);
    field.inlined(result.inputs);
    field.inlined("seconds", result.times);
  }
  static void check(const EvaluationResult& result, const JsonCursor& json) {
    CacheQuality::check(result.quality, json);
  }
};

/// Returns "perplexity 14.2 ± 0.3 (NLL …), × 1.02 of the full cache's (…), KL divergence …". `quality.loss` must be
/// set.
std::string quality_text(const CacheQuality& quality);
/// Describes the bytes that all sequences share: the total, and the bytes per token of one document.
std::string shared_bytes_text(std::size_t bytes, std::size_t tokens);
std::string to_text(const EvaluationResult& result);
/// Returns the line of an engine, and its notes, as texts of results have them.
std::string to_text(const EngineUse& use);

}  // namespace kvs::inline results
