// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/plan.h"

#include <algorithm>

#include "calibrate/budget/size.h"
#include "calibrate/elitekv/factors.h"
#include "calibrate/elitekv/obstacles.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Returns --rank-step or its default.
std::size_t rank_step(const Options& options, const EliteShape& shape) {
  return options.has("rank-step") ? options.count("rank-step", 1, 1 << 20) : standard_rank_step(shape);
}

/// Returns true if pairs are weighted by attention: --pairs or its default.
bool by_attention(const Options& options, const EliteSearchPlan& plan) {
  static constexpr std::string_view kWords[] = {"attention", "uniform"};
  const bool possible = plan.norm == 2 && !plan.baseline;
  if (!options.has("pairs")) return possible && planned_whitening(options) == Whitening::kBoth;
  return options.choice("pairs", kWords) == kWords[0];
}

/// Returns true if queries are fitted: --queries or its default. By default, queries are not fitted with factors of
/// full rank, which reproduce keys and values exactly.
bool fits_queries(const Options& options, const ModelConfig& model, const EliteConfig& config) {
  static constexpr std::string_view kWords[] = {"fitted", "model"};
  if (!options.has("queries")) return config.by_attention && *config.rank < full_rank(model, config.r, config.joint);
  const bool wanted = options.choice("queries", kWords) == kWords[0];
  if (wanted && !config.by_attention) throw Error(ErrorCode::kUsage, "--queries", "fitted needs --pairs attention");
  return wanted;
}

/// Returns the allocations of --cache-ratio.
std::vector<EliteAllocation> allocations(const Options& options, const ModelConfig& model) {
  const double ratio = options.share("cache-ratio");
  const EliteShape shape{model.d_model, model.kv_heads(), model.head_dim(), model.chunks()};
  auto result = elite_allocations(shape, ratio, options.flag("allow-more-parameters"), rank_step(options, shape));
  if (result.empty())
    throw Error(
        ErrorCode::kUsage, "--cache-ratio",
        "found " + options.text("cache-ratio") + ", of which no pair of r and d_ckv makes a cache: try --rank-step");
  return result;
}

/// Returns the allocations with their factorizations, J-LRD first.
std::vector<EliteCandidate> candidates(const Options& options, const ModelConfig& model) {
  const std::string how = options.text("factorization");
  std::vector<EliteCandidate> result;
  for (const bool joint : {true, false}) {
    if (how != "any" && how != (joint ? "joint" : "separate")) continue;
    for (const EliteAllocation& size : allocations(options, model))
      if (joint || size.d_ckv > 1) result.push_back({size, joint});  // S-LRD needs a rank for each
  }
  if (result.empty())
    throw Error(ErrorCode::kUsage, "--factorization", "found separate and no d_ckv above 1: try --rank-step");
  return result;
}

std::optional<EliteByLayerPlan> by_layer_plan(const Options& options, const ModelConfig& model) {
  if (!options.has("per-layer-rounds")) return std::nullopt;
  const EliteShape shape{model.d_model, model.kv_heads(), model.head_dim(), model.chunks()};
  return EliteByLayerPlan{.rank_step = rank_step(options, shape),
                          .max_r = options.on_off("disjoint") ? model.chunks() / model.kv_heads() : model.chunks() - 1,
                          .more_parameters = options.flag("allow-more-parameters"),
                          .rounds = options.count("per-layer-rounds", 1, 1000)};
}

/// Returns --holdout-documents or its default; 0 without --cache-ratio and --per-layer-rounds.
std::size_t held_out_documents(const Options& options, std::size_t documents) {
  const bool by_layer = options.has("per-layer-rounds");
  if (!options.has("cache-ratio") && !by_layer) return 0;
  if (documents < 2)
    throw Error(ErrorCode::kUsage, by_layer ? "--per-layer-rounds" : "--cache-ratio",
                "found one document, expected two or more: one held out");
  return options.has("holdout-documents") ? options.count("holdout-documents", 1, documents - 1)
                                          : documents_to_hold_out(documents);
}

EliteSearchPlan planned_search(const Options& options, const ModelConfig& config, std::vector<std::size_t> layers) {
  static constexpr std::string_view kBaselines[] = {"uniform", "contribution", "high", "low"};
  EliteSearchPlan plan;
  refuse_obstacle(ropelite_obstacle(config), "kvcalibrate elitekv", config);
  plan.geometry = {std::move(layers), config.query_heads(), config.kv_heads(), config.chunks()};
  plan.norm = static_cast<int>(options.integer("norm", 1, 2));
  plan.granularity = options.text("granularity") == "kv-head" ? Granularity::kKvHead : Granularity::kQueryHead;
  plan.count =
      options.has("cache-ratio") ? allocations(options, config).back().r : options.count("elite", 1, config.chunks());
  if (options.has("baseline"))
    plan.baseline =
        static_cast<EliteBaseline>(std::ranges::find(kBaselines, options.choice("baseline", kBaselines)) - kBaselines);
  plan.disjoint = options.on_off("disjoint");
  if (by_attention(options, plan))
    for (const std::size_t layer : plan.geometry.layers) plan.rules.push_back(score_rule(config, layer));
  if (plan.disjoint) refuse_obstacle(disjoint_obstacle(config), "kvcalibrate elitekv --disjoint on", config);
  if (plan.disjoint && plan.count * config.kv_heads() > config.chunks())
    throw Error(ErrorCode::kUsage, "--elite",
                "found " + std::to_string(plan.count) + " with --disjoint on, expected at most " +
                    std::to_string(config.chunks() / config.kv_heads()));
  return plan;
}

/// Sets the factors of the plan: --rank is checked against full rank and the no-extra-parameters bound. The plan has no
/// rank without --rank or if rows per query head are not possible.
void plan_factors(const Options& options, const ModelConfig& model, ElitePlan& plan) {
  static constexpr std::string_view kSplits[] = {"up", "down", "sqrt"}, kOutputs[] = {"model", "fitted"};
  EliteConfig& config = plan.config;
  config.joint = options.text("factorization") != "separate";
  config.split =
      static_cast<SingularSplit>(std::ranges::find(kSplits, options.choice("singular-values", kSplits)) - kSplits);
  if (!has_factors(options)) return;
  refuse_obstacle(factor_obstacle(model), "kvcalibrate elitekv --rank", model);
  if (!config.joint && 2 * config.r == model.head_dim())
    throw Error(
        ErrorCode::kUsage, "--factorization",
        "found separate with every channel of a key elite, expected joint: no row of the keys is left to factorise");
  const auto limit = static_cast<std::int64_t>(full_rank(model, config.r, config.joint));
  const auto rank = options.has("cache-ratio") ? allocations(options, model).back().d_ckv
                                               : options.count("rank", config.joint ? 1 : 2, limit);
  if (config.granularity == Granularity::kQueryHead && model.group() > 1) {
    plan.notes.emplace_back(
        "elite sets per query head are analysis only on a model whose query heads share keys; no factors are made");
    return;
  }
  config.rank = rank;
  config.fitted_queries = fits_queries(options, model, config);
  config.fitted_outputs = options.choice("outputs", kOutputs) == kOutputs[1];
  const std::size_t bound = no_extra_parameters_rank(model.d_model, model.kv_heads(), model.head_dim(), config.r);
  if (rank > bound && !options.flag("allow-more-parameters"))
    plan.notes.push_back("rank " + std::to_string(rank) +
                         " makes factors with more parameters than what they replace (bound " + std::to_string(bound) +
                         ")");
}

}  // namespace

bool has_factors(const Options& options) { return options.has("rank") || options.has("cache-ratio"); }

Whitening planned_whitening(const Options& options) {
  static constexpr std::string_view kWords[] = {"off", "on", "both"};
  if (!has_factors(options)) return Whitening::kOff;
  if (!options.has("whiten")) return options.has("capture") ? Whitening::kOff : Whitening::kBoth;
  return static_cast<Whitening>(std::ranges::find(kWords, options.choice("whiten", kWords)) - kWords);
}

ElitePlan elite_plan(const Options& options, const ModelConfig& model, std::vector<std::size_t> layers,
                     std::size_t documents) {
  ElitePlan plan;
  plan.search = planned_search(options, model, std::move(layers));
  if (options.has("cache-ratio")) plan.candidates = candidates(options, model);
  plan.by_layer = by_layer_plan(options, model);
  EliteConfig& config = plan.config;
  config.layers = plan.search.geometry.layers;
  config.r = plan.search.count;
  config.norm = plan.search.norm;
  config.by_attention = !plan.search.rules.empty();
  config.granularity = plan.search.granularity;
  config.search = plan.search.baseline ? options.text("baseline") : plan.search.disjoint ? "disjoint" : "search";
  plan_factors(options, model, plan);
  if (config.rank) config.whitening = planned_whitening(options);
  if (config.whitening != Whitening::kOff && !options.has("capture")) plan.search.d_model = model.d_model;
  plan.held_out = held_out_documents(options, documents);
  return plan;
}

}  // namespace kvs::inline calibrate
