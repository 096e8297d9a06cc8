// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/recommend_plan.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "calibrate/budget/size.h"
#include "calibrate/compare/options.h"
#include "core/error.h"
#include "core/nearest.h"
#include "eval/cache_quality.h"

namespace kvs::inline compare {
namespace {

constexpr double kMinContext = 16;
/// Shares of the full cache's bytes at which methods are sized.
constexpr double kShares[] = {0.75, 0.5, 0.375, 0.25, 0.125};
constexpr const char* kComposedType = "q8_0";  // of the rows of other methods

void check_recommend_options(const Options& options) {
  require_compared_caches(*compared_engine(options), "--engine");
  if (options.has("budget")) {
    (void)parse_budget(options.text("budget"));
    if (options.given("max-kl")) refuse_options(options, {"max-kl"}, "--budget");
  }
  if (options.has("time")) (void)compare_seconds(options);
}

CompareGrid recommendation_grid(const RecommendationGoal& goal, std::size_t tokens) {
  CompareGrid grid = engine_grid(*goal.engine, {kComposedType});
  grid.budgets.assign(std::begin(kShares), std::end(kShares));
  if (goal.max_share && std::ranges::find(kShares, *goal.max_share) == std::end(kShares))
    grid.budgets.push_back(*goal.max_share);
  std::ranges::sort(grid.budgets, std::greater());
  // Methods that compress a prefix once change nothing before its end.
  if (goal.engine->runs_methods) grid.prefix = tokens * 3 / 4;
  return grid;
}

}  // namespace

void add_recommend_options(OptionTable& table) {
  add_model_options(table);
  table.value("engine", "NAME", "the engine: " + listed(engine_names()))
      .required()
      .value("context", "N", "tokens of a conversation")
      .required()
      .from(kMinContext, kMaxTokens)
      .list("text", "PATH",
            "text file, folder, *.jsonl with a `text` field; may repeat (default: a sample of 12,000 tokens; your own "
            "text is better)")
      .value("tokens-file", "FILE", "instead of --text: JSONL with an array of token ids per line, such as [5, 17, 3]")
      .value("documents", "N", "maximum number of documents of N tokens", "4")
      .from(1)
      .value("budget", "SIZE", "maximum bytes: a share of the full 16-bit cache, such as 40%, or '9000B a token'")
      .value("max-kl", "NATS",
             "without --budget: maximum KL divergence from the full cache's predictions, nats a token", "0.02")
      .from(0, 100)
      .value("time", "TIME", "time limit, such as 30s, 60m or 2h")
      .value("bos", "auto|on|off", kBosHelp, "auto")
      .value("invalid-utf8", "replace", "replace invalid UTF-8 by U+FFFD and count it, instead of stopping")
      .flag("skip-bad-lines", "skip and count malformed JSONL lines, instead of stopping")
      .value("out-dir", "DIR",
             "recommendation.json, the config, the comparison with its figure, and the engine's own file")
      .required();
  add_question_options(table, TextUse::kScored);
  add_run_options(table, true);
  table.check(check_recommend_options);
}

RecommendationGoal recommendation_goal(const Options& options, const ModelConfig& model) {
  RecommendationGoal goal{
      .engine = compared_engine(options), .context = options.count("context"), .max_kl = options.real("max-kl")};
  if (model.exceeds_context(goal.context))
    throw Error(ErrorCode::kUsage, "--context",
                "found " + std::to_string(goal.context) + ", expected at most the model's context of " +
                    std::to_string(model.context));
  const double full = full_cache_bytes(model, goal.context);
  if (options.has("budget"))
    goal.max_share = static_cast<double>(budget_bytes(options.text("budget"), full, goal.context)) / full;
  return goal;
}

CompareInput recommendation_input(const Run& run, const RecommendationGoal& goal) {
  CompareInput input = compare_input(run, recommendation_grid(goal, run.tokens()), goal.engine, 0);
  if (goal.max_share) require_reachable(input.configurations, run.options().text("budget"), *goal.max_share);
  return input;
}

}  // namespace kvs::inline compare
