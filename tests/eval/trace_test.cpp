// SPDX-License-Identifier: Apache-2.0
#include "eval/trace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "eval/generation.h"
#include "eval/trace_quality.h"
#include "ranks/one_process.h"
#include "tests/eval/tiny_model.h"
#include "tests/model/caches.h"

namespace kvs {
namespace {

/// Prompts of different lengths.
std::vector<TokenIds> some_prompts(std::size_t count) {
  std::vector<TokenIds> prompts(count);
  for (std::size_t n = 0; n < count; ++n) {
    prompts[n] = TinyModel::tokens(12 + 3 * n);
    prompts[n].front() = static_cast<std::int32_t>(n);
  }
  return prompts;
}

struct Settings {
  std::string method = "full";
  std::vector<std::string> settings = {};
  TokenChoice choice = {};
  TokenIds end_tokens = {};
  std::size_t together = 4, count = 24;
};

TracePlan plan_of(TinyModel& tiny, const Settings& settings) {
  const ModelConfig& config = tiny.model->config();
  return {.make = [&config,
                   settings](const TokenIds&) { return test::cache_of(config, settings.method, settings.settings); },
          .make_full = [&config](const TokenIds&) { return test::cache_of(config, "full"); },
          .continuation = {.count = settings.count,
                           .end_tokens = settings.end_tokens,
                           .choice = settings.choice,
                           .length = 12 + 3 * 5 + settings.count},
          .together = settings.together};
}

TraceRun run_tiny(TinyModel& tiny, const Settings& settings, std::span<const Continuation> traces = {}) {
  const auto alone = make_one_process();
  return run_traces(*tiny.decoder, some_prompts(5), traces, plan_of(tiny, settings), {}, nullptr, *alone);
}

TraceQuality quality_of(TinyModel& tiny, const TraceRun& run, std::size_t count = 24) {
  return trace_quality(some_prompts(5), run.outcomes, tiny.model->config(), count);
}

std::vector<Continuation> traces_of(const TraceRun& run) {
  std::vector<Continuation> traces;
  for (const TraceOutcome& outcome : run.outcomes) traces.push_back(outcome.trace);
  return traces;
}

TEST(Trace, TheFullCacheNeverDivergesFromItself) {
  TinyModel tiny;
  for (const double temperature : {0.0, 1.0}) {
    const TraceRun run = run_tiny(tiny, {.choice = {temperature, 7}});
    for (const TraceOutcome& outcome : run.outcomes) {
      EXPECT_EQ(outcome.own.ids, outcome.trace.ids);
      EXPECT_EQ(outcome.trace.ids.size(), 24U);
      EXPECT_EQ(outcome.scored.full->divergence.tokens, 24U);
    }
    const TraceQuality quality = quality_of(tiny, run);
    EXPECT_NEAR(quality.kl.mean, 0, 1e-10);
    EXPECT_EQ(quality.top1.mean, 1);
    EXPECT_EQ(quality.own.undiverged, 1);
    EXPECT_EQ(quality.own.same_tokens.mean, 24);
    EXPECT_FALSE(quality.own.median.has_value());
    EXPECT_DOUBLE_EQ(quality.bytes_ratio, 1);
  }
}

TEST(Trace, IsWhatGenerateMakes) {
  TinyModel tiny;
  const TraceRun run = run_tiny(tiny, {});
  const auto prompts = some_prompts(5);
  for (std::size_t n = 0; n < prompts.size(); ++n) {
    Cache cache = test::cache_of(tiny.model->config(), "full");
    EXPECT_EQ(run.outcomes[n].trace.ids,
              generate(*tiny.decoder, cache, prompts[n], 24, [](std::int32_t) { return true; }).ids);
  }
}

TEST(Trace, ABatchMakesTheContinuationsOfSinglePrompts) {
  TinyModel tiny;
  const std::vector<Settings> cases{{},
                                    {.method = "full", .settings = {"type=int8_per_token_head"}},
                                    {.method = "streaming", .settings = {"sinks=2", "cache_size=16"}},
                                    {.method = "h2o", .settings = {"recent=4", "cache_size=16"}},
                                    {.method = "kivi", .settings = {"bits=2", "residual=8", "group=8"}},
                                    {.method = "lagkv", .settings = {"sinks=2", "lag=4", "ratio=0.5"}}};
  for (Settings settings : cases) {
    settings.together = 4;
    const TraceRun batches = run_tiny(tiny, settings);
    settings.together = 1;
    const TraceRun singles = run_tiny(tiny, settings);
    for (std::size_t n = 0; n < batches.outcomes.size(); ++n) {
      EXPECT_EQ(batches.outcomes[n].trace.ids, singles.outcomes[n].trace.ids) << settings.method;
      EXPECT_EQ(batches.outcomes[n].own.ids, singles.outcomes[n].own.ids) << settings.method;
      EXPECT_EQ(batches.outcomes[n].scored.cache.end.stored, singles.outcomes[n].scored.cache.end.stored);
    }
  }
}

TEST(Trace, ScoresWhatTheCacheWouldPredictTokenByToken) {
  TinyModel tiny;
  const Settings settings{.method = "streaming", .settings = {"sinks=2", "cache_size=16"}};
  const TraceRun run = run_tiny(tiny, settings);
  // The first token at which the cache's own greedy continuation differs is the first at which its prediction of the
  // trace has another first choice.
  const auto prompts = some_prompts(5);
  const ModelConfig& config = tiny.model->config();
  for (std::size_t n = 0; n < prompts.size(); ++n) {
    const TraceOutcome& outcome = run.outcomes[n];
    TokenIds tokens = prompts[n];
    tokens.insert(tokens.end(), outcome.trace.ids.begin(), outcome.trace.ids.end());
    Cache cache = test::cache_of(config, settings.method, settings.settings);
    std::size_t same = 0;
    bool equal = true;
    (void)run_cached(*tiny.decoder, cache, tokens, {}, [&](const ResidualStream& group, std::size_t first) {
      for (std::size_t row = 0; row < group.tokens(); ++row) {
        if (first + row + 1 < prompts[n].size() || first + row + 1 == tokens.size()) continue;
        const auto logits = tiny.decoder->logits(group, std::span(&row, 1));
        equal = equal && std::ranges::max_element(logits) - logits.begin() == tokens[first + row + 1];
        same += equal ? 1 : 0;
      }
    });
    EXPECT_EQ(std::ranges::mismatch(outcome.trace.ids, outcome.own.ids).in1 - outcome.trace.ids.begin(),
              static_cast<std::ptrdiff_t>(same));
  }
  EXPECT_LT(quality_of(tiny, run).own.undiverged, 1);  // the cache does drop tokens
}

TEST(Trace, MadeBeforeGivesTheSameOutcomes) {
  TinyModel tiny;
  for (const double temperature : {0.0, 0.8}) {
    const Settings settings{
        .method = "lagkv", .settings = {"sinks=2", "lag=4", "ratio=0.5"}, .choice = {temperature, 3}};
    const TraceRun fresh = run_tiny(tiny, settings);
    const TraceRun reused = run_tiny(tiny, settings, traces_of(fresh));
    EXPECT_EQ(to_json(quality_of(tiny, reused)), to_json(quality_of(tiny, fresh)));
  }
}

TEST(Trace, EndsAtAnEndTokenForBothCaches) {
  TinyModel tiny;
  const TraceRun free = run_tiny(tiny, {});
  const TokenIds& ids = free.outcomes.front().trace.ids;
  const std::int32_t end = ids[7];
  const auto length = static_cast<std::size_t>(std::ranges::find(ids, end) - ids.begin()) + 1;
  const TraceRun run = run_tiny(tiny, {.end_tokens = {end}});
  const TraceOutcome& outcome = run.outcomes.front();
  EXPECT_TRUE(outcome.trace.ended);
  EXPECT_EQ(outcome.trace.ids, TokenIds(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length)));
  EXPECT_EQ(outcome.own.ids, outcome.trace.ids);
  EXPECT_EQ(outcome.scored.full->divergence.tokens, length);
  const TraceQuality quality = quality_of(tiny, run);
  EXPECT_TRUE(quality.samples.front().own_ended);
  EXPECT_FALSE(quality.samples.front().diverged());
}

TEST(Trace, PartsHoldTheMeansOfTheirTokens) {
  TinyModel tiny;
  const Settings settings{.method = "streaming", .settings = {"sinks=2", "cache_size=16"}, .count = 70};
  const auto prompts = some_prompts(5);
  const TraceRun run = run_tiny(tiny, settings);
  const TraceQuality quality = quality_of(tiny, run, 70);
  ASSERT_EQ(quality.curves.parts.size(), 32U);
  EXPECT_EQ(quality.curves.parts.back().end, 70U);
  double kl = 0, begin = 0;
  for (const auto& part : quality.curves.parts) {
    kl += part.kl * (static_cast<double>(part.end) - begin);
    begin = static_cast<double>(part.end);
  }
  EXPECT_NEAR(kl / 70, quality.kl.mean, 1e-9 + 1e-9 * quality.kl.mean);
  EXPECT_GT(quality.kl.mean, 0);
}

TEST(Trace, AWholePrefixIsScoredFromItsLastTokenOn) {
  TinyModel tiny;
  TracePlan plan = plan_of(tiny, {});
  const ModelConfig& config = tiny.model->config();
  plan.make = [&config](const TokenIds& prompt) {
    return test::cache_of(
        config, "lagkv",
        {"sinks=1", "lag=4", "ratio=0.25", "prefix=" + std::to_string(prompt.size()), "prefill=whole"});
  };
  const auto alone = make_one_process();
  const TraceRun run = run_traces(*tiny.decoder, some_prompts(3), {}, plan, {}, nullptr, *alone);
  for (const TraceOutcome& outcome : run.outcomes) {
    EXPECT_EQ(outcome.scored.full->divergence.tokens, 24U);
    EXPECT_EQ(outcome.own.ids.front(), outcome.trace.ids.front());  // the prompt was read with the full cache
  }
}

TEST(MeanPerToken, IsARatioOfSums) {
  // (1 + 6) / (2 + 5) = 1; residuals ±1 · 2 / 7, whose standard error is 2/7 and Student's t with 1 degree is 12.7062.
  const PromptMean mean = mean_per_token(std::vector<double>{1, 6}, std::vector<double>{2, 5});
  EXPECT_DOUBLE_EQ(mean.mean, 1);
  ASSERT_TRUE(mean.interval.has_value());
  EXPECT_NEAR(mean.interval->second - 1, 12.7062 * 2 / 7, 1e-3);
  EXPECT_FALSE(mean_per_token(std::vector<double>{3}, std::vector<double>{2}).interval.has_value());
}

}  // namespace
}  // namespace kvs
