// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/options.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "calibrate/budget/size.h"
#include "calibrate/method.h"
#include "core/error.h"
#include "eval/cache_quality.h"

namespace kvs::inline calibrate {
namespace {

constexpr auto kMostTokens = static_cast<std::int64_t>(kMaxKvtcTokens);

KvtcTokens held_tokens_of(const Options& options) {
  const auto type = std::ranges::find(kKvtcRecentNames, options.choice("recent-type", kKvtcRecentNames));
  return {.sinks = options.count("sinks", 0, kMostTokens),
          .recent = options.count("recent", 0, kMostTokens),
          .block = options.count("block", 1, static_cast<std::int64_t>(kMaxKvtcBlock)),
          .type = static_cast<KvtcRecent>(type - kKvtcRecentNames.begin())};
}

/// Returns the tokens of the budget's document. @throws Error kUsage if none of them would be coded
std::size_t length_of(const Options& options, std::size_t tokens) {
  const KvtcTokens held = held_tokens_of(options);
  const std::size_t length = options.has("length") ? options.count("length", 1, kMostTokens) : tokens,
                    whole = held.sinks + held.recent + held.block;
  if (length <= whole)
    throw Error(ErrorCode::kUsage, options.has("length") ? "--length" : "--window",
                "found " + std::to_string(length) + " tokens, expected more than the " + std::to_string(whole) +
                    " of --sinks, --recent and --block");
  return length;
}

}  // namespace

void add_kvtc_options(OptionTable& table) {
  const KvtcTokens paper;
  table.value("out", "FILE", "the config to write; its tensors are written next to it")
      .required()
      .value("budget", "SIZE",
             "maximum bytes of the cache of a document of --length tokens: a share of the full 16-bit cache, such as "
             "12.5% or 0.125, or bytes, such as '4096B a token'; the bytes of codes are those of the calibration's "
             "text")
      .required()
      .value("length", "N", "tokens of a document that the budget is for (default: --window)")
      .from(1, kMaxKvtcTokens)
      .value("sinks", "N", "first tokens that are not coded", std::to_string(paper.sinks))
      .from(0, kMaxKvtcTokens)
      .value("recent", "N", "last tokens that are not coded", std::to_string(paper.recent))
      .from(0, kMaxKvtcTokens)
      .value("block", "N", "number of tokens that are coded at once, as soon as they are no longer recent",
             std::to_string(paper.block))
      .from(1, kMaxKvtcBlock)
      .value("recent-type", "f16|q8_0", "type of the tokens that are recent or wait", "f16");
}

void check_kvtc_options(const Options& options) {
  (void)parse_budget(options.text("budget"));
  (void)length_of(options, options.count("window", 2, kMaxTokens));
}

KvtcPlan kvtc_plan(const Options& options, const ModelConfig& model, std::size_t tokens) {
  refuse_obstacle(obstacle_of(kKvtcMethod, model), "kvcalibrate kvtc", model);
  const std::size_t length = length_of(options, tokens);
  KvtcPlan plan{.bytes = budget_bytes(options.text("budget"), full_cache_bytes(model, length), length),
                .tokens = length,
                .held = held_tokens_of(options)};
  if (tokens <= plan.held.sinks)
    throw Error(ErrorCode::kUsage, "--window",
                "found " + std::to_string(tokens) + ", expected more than the " + std::to_string(plan.held.sinks) +
                    " tokens of --sinks");
  if (kvtc_code_bytes(kvtc_pools(model), plan) == 0)
    throw Error(ErrorCode::kUsage, "--budget",
                "found " + std::to_string(plan.bytes) + " bytes of a document of " + std::to_string(length) +
                    " tokens, expected more than what sinks and tokens that wait take");
  return plan;
}

}  // namespace kvs::inline calibrate
