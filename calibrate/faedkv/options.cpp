// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "calibrate/budget/options.h"
#include "calibrate/common/ablation_options.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::array<std::string_view, 12> kAblationOptions{"layers", "chunks",     "sweep",     "keep",
                                                            "passes", "confidence", "prefix",    "sinks",
                                                            "recent", "transform",  "key-space", "spectrum"};

constexpr double kMinConfidence = 0.5, kMaxConfidence = 0.999999;

/// Returns the plan's grid from the options, for documents of `tokens` tokens.
AblationPlan ablation_grid(const Options& options, std::size_t tokens) {
  AblationPlan plan;
  plan.setup = ablation_setup(options, tokens);
  plan.grid = {plan.setup.transform, options.text("spectrum") == "full", 1, plan.setup.filtered()};
  const std::size_t bins = plan.grid.bins();
  plan.grid.chunks = options.count("chunks", 1, bins);
  plan.chunk_counts = {plan.grid.chunks};
  if (options.has("sweep"))
    for (const std::size_t count : options.integers("sweep", 1, bins))
      if (std::ranges::find(plan.chunk_counts, count) == plan.chunk_counts.end()) plan.chunk_counts.push_back(count);
  plan.keep = options.share("keep");
  return plan;
}

/// Returns the race that the options request, if any. @param plan  plan of the ablation without a race
std::optional<AblationPlan::Race> race_of(const Options& options, const AblationPlan& plan, std::size_t documents) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (!options.has("passes") && !options.has("confidence")) return std::nullopt;
  const std::size_t least = plan.variants() * min_documents(documents);
  AblationPlan::Race race{.passes = plan.variants() * documents,
                          .seed = static_cast<std::uint64_t>(options.integer("seed", 0, kMax))};
  if (options.has("confidence")) race.confidence = options.real("confidence", kMinConfidence, kMaxConfidence);
  if (options.has("passes")) {
    race.passes = options.count("passes", 1, std::int64_t{1} << 40);
    if (race.passes < least)
      throw Error(ErrorCode::kUsage, "--passes",
                  "found " + std::to_string(race.passes) + ", expected at least " + std::to_string(least) + ": " +
                      std::to_string(min_documents(documents)) + " documents for each of " +
                      std::to_string(plan.variants()) + " chunks");
  }
  return race;
}

}  // namespace

void add_faedkv_options(OptionTable& table) {
  table.value("out", "FILE", "the config to write; figures are written next to it")
      .required()
      .value("layers", "LAYERS", "layers to ablate, such as 0,14-16", "all")
      .value("chunks", "C", "number of chunks of the spectrum", "22")
      .from(1)
      .value("sweep", "LIST", "also ablate with these numbers of chunks and draw perplexity against the number")
      .from(1)
      .value("keep", "SHARE", "share of the chunks to keep", "0.5")
      .value("passes", "N",
             "race: maximum number of passes, each of one chunk and one document; undecided chunks come first")
      .from(1)
      .value("confidence", "p",
             "race: a chunk that is clear of the threshold at confidence p gets no more documents (default: 0.95)")
      .from(kMinConfidence, kMaxConfidence);
  add_ablation_options(table, {.sinks = "10", .recent = "50", .transform = "dft", .key_space = "k_post"});
  table.value("spectrum", "half|full", "full: all N bins, as the paper prints it", "half");
  add_budget_options(table, "faedkv");
  table.check([](const Options& options) {
    require_partner(options, {"seed"}, {"passes", "confidence", "budget"});
    if (!asks_for_budget(options)) (void)ablation_grid(options, options.count("window", 2, kMaxTokens));
  });
}

bool asks_for_budget(const Options& options) { return has_budget(options, kAblationOptions); }

FaedkvPlan faedkv_plan(const Options& options, std::vector<std::size_t> layers, std::size_t documents,
                       std::size_t tokens) {
  FaedkvPlan plan;
  static_cast<AblationPlan&>(plan) = ablation_grid(options, tokens);
  const auto most = static_cast<std::int64_t>(tokens);
  plan.sinks = options.count("sinks", 0, most);
  plan.recent = options.count("recent", 0, most);
  plan.layers = std::move(layers);
  plan.race = race_of(options, plan, documents);
  return plan;
}

}  // namespace kvs::inline calibrate
