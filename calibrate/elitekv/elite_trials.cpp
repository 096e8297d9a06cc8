#include "calibrate/elitekv/elite_trials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "core/exponential.h"
#include "draw/axes.h"
#include "embedded/figure_elite_trials.h"

namespace kvs {
namespace {

/// Names at positions as a gnuplot string that holds a list of tics.
std::string tics_of(const std::map<std::size_t, std::size_t>& names) {
  std::string tics = "\"(";
  for (const auto& [position, name] : names)
    tics += (tics.size() > 2 ? ", '" : "'") + std::to_string(name) + "' " + std::to_string(position);
  return tics + ")\"";
}

constexpr double kFarAbove = 3;  // what lies higher would press the curves together

std::string perplexity_text(double nll) {
  const double value = std::exp(nll);
  if (value < 1000 || !std::isfinite(value)) return exponential_text(nll);
  std::array<char, 320> text{};
  std::snprintf(text.data(), text.size(), value < 1e7 ? "%.0f" : "%.4g", value);
  return text.data();
}

/// An arrow says that the line is above the page's `high` end.
std::string gqa_title(const GqaTrial& gqa, double high) {
  return "GQA, " + std::to_string(gqa.heads) + (gqa.heads == 1 ? " head: " : " heads: ") + perplexity_text(gqa.nll) +
         (drawn_exponential(gqa.nll) > high ? " ↑" : "");
}

}  // namespace

EliteTrials elite_trials(const EliteConfig& config, const ModelConfig& model, std::size_t documents,
                         std::size_t tokens) {
  const EliteTrial& first = best_trial(config);
  std::vector<EliteTrial> trials = config.trials;
  std::erase_if(trials, [](const EliteTrial& trial) { return !trial.is_finite(); });
  const double share = static_cast<double>(2 * first.r * model.kv_heads + first.d_ckv) /
                       static_cast<double>(2 * model.kv_heads * model.head_dim);
  return {model.name + " · EliteKV, caches of " + short_number(std::round(1000 * share) / 10) + " % · " +
              std::to_string(documents) + " documents of " + std::to_string(tokens) + " tokens held out",
          std::move(trials), config.gqa && config.gqa->is_finite() ? config.gqa : std::nullopt};
}

FigureImages render_elite_trials(const EliteTrials& sweep) {
  Figure figure(embedded::figure_elite_trials, 690, 340);
  FigureData data;
  std::map<std::size_t, std::size_t> positions, ranks;
  const double full = drawn_exponential(sweep.trials.front().nll_full);
  double low = full, high = full;
  std::size_t series = 0;
  for (const bool joint : {true, false}) {
    if (std::ranges::find(sweep.trials, joint, &EliteTrial::joint) == sweep.trials.end()) continue;
    for (const EliteTrial& trial : sweep.trials) {
      if (trial.joint != joint) continue;
      const double ppl = drawn_exponential(trial.nll);
      data.row({static_cast<double>(trial.r), ppl});
      positions[trial.r] = trial.r;
      ranks[trial.r] = trial.d_ckv;
      low = std::min(low, ppl);
      high = std::max(high, ppl);
    }
    data.next_block();
    figure.set("series_title_" + std::to_string(++series), joint ? "J-LRD" : "S-LRD");
  }
  high *= 1.25;
  const double gqa = sweep.gqa ? drawn_exponential(sweep.gqa->nll) : std::numeric_limits<double>::quiet_NaN();
  if (gqa < kFarAbove * high) high = std::max(high, 1.25 * gqa);
  const auto first = static_cast<double>(positions.begin()->first),
             last = static_cast<double>(positions.rbegin()->first);
  const double margin = std::max(0.5, 0.04 * (last - first));
  return figure.data("ppl", data)
      .set("series", static_cast<double>(series))
      .set("full", full)
      .set("full_title", "full cache: " + perplexity_text(sweep.trials.front().nll_full))
      .set("gqa", gqa)
      .set("gqa_title", sweep.gqa ? gqa_title(*sweep.gqa, high) : "")
      .set("heading", sweep.heading)
      .set("x_low", first - margin)
      .set("x_high", last + margin)
      .set("y_low", low / 1.25)
      .set("y_high", high)
      .set_raw("r_tics", tics_of(positions))
      .set_raw("rank_tics", tics_of(ranks))
      .render();
}

}  // namespace kvs
