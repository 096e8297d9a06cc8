#include "compare/choices.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/paired_difference.h"
#include "compare/comparison_text.h"
#include "compare/evidence.h"
#include "compare/spending.h"

namespace kvs {
namespace {

constexpr double kRoundedShare = 1 + 1e-9;

using Cells = std::vector<std::size_t>;

/// "h2o + q8_0 (24.8 %)".
std::string name_of(const Json& cell) {
  return cell.at("label").get<std::string>() + text_of(" (%.1f %%)", 100 * cell.at("bytes_ratio").get<double>());
}

/// "h2o + q8_0 (24.8 %), perplexity × 1.0184 (0.9997–1.0367), KL 0.0236".
std::string described(const Json& cell) {
  const Json& ratio = cell.at("ratio");
  return name_of(cell) + text_of(", perplexity × %.4f", ratio.at("ppl").get<double>()) +
         interval_text(ratio.at("interval"), "%.4f") + text_of(", KL %.4f", cell.at("kl").get<double>());
}

/// "KL × 0.45 (0.41–0.5) of NAME's over 8 documents".
std::string relative_text(const Json& kl, const Json& other, const LossDifferences& differences) {
  return text_of("KL × %.3g", kl.at("mean").get<double>()) + interval_text(kl.at("interval"), "%.3g") + " of " +
         name_of(other) + "'s over " + samples_text(differences);
}

/// Scored cells of at most `budget`.
Cells cells_within(const ScoredCells& scored, double budget) {
  Cells found;
  for (std::size_t n = 0; n < scored.cells.size(); ++n)
    if (!scored.results[n].scores.kl.empty() &&
        scored.json[n].at("bytes_ratio").get<double>() <= budget * kRoundedShare)
      found.push_back(n);
  return found;
}

/// Those on the most documents that any of them has, by divergence.
Cells rivals(const ScoredCells& scored, const Cells& cells) {
  std::size_t most = 1;
  for (const std::size_t n : cells) most = std::max(most, scored.results[n].scores.kl.size());
  Cells found;
  std::ranges::copy_if(cells, std::back_inserter(found),
                       [&](std::size_t n) { return scored.results[n].scores.kl.size() == most; });
  std::ranges::stable_sort(found, {}, [&](std::size_t n) { return mean_kl(scored.results[n].scores); });
  return found;
}

/// Why nothing is the best of a budget: no time was left for its cells, or all need more; then what comes nearest.
std::string unreached_text(const ScoredCells& scored, double budget) {
  const Json* nearest = nullptr;
  double least = 0;
  for (const Json& cell : scored.json) {
    if (cell.at("budget") == budget && (cell.at("error") == kNoTimeToScore || cell.at("documents") > 0))
      return "no time was left to score what would reach it";
    const Json& share = cell.contains("bytes_ratio") ? cell.at("bytes_ratio") : cell.at("needs");
    if (share.is_null() || (nearest != nullptr && share.get<double>() >= least)) continue;
    nearest = &cell;
    least = share;
  }
  if (nearest == nullptr) return "nothing reaches it";
  return "nothing reaches it; nearest is " + nearest->at("label").get<std::string>() +
         text_of(" with %.3g %%", 100 * least);
}

/// The choice among the cells of one budget.
class BestChoice {
 public:
  BestChoice(const ScoredCells& scored, double budget)
      : scored_(scored), within_(cells_within(scored, budget)), rivals_(rivals(scored, within_)) {}

  Json json(double budget) const {
    Json choice{{"budget", budget},       {"cell", nullptr}, {"leader", nullptr}, {"documents", 0},
                {"alike", Json::array()}, {"kl", nullptr},   {"verdict", nullptr}};
    if (rivals_.empty()) {
      choice["verdict"] = unreached_text(scored_, budget);
      return choice;
    }
    const std::size_t leader = rivals_.front();
    choice["leader"] = leader;
    choice["documents"] = scored_.results[leader].scores.kl.size();
    decide(leader, choice);
    return choice;
  }

 private:
  const Json& cell(std::size_t n) const { return scored_.json[n]; }
  LossDifferences between(std::size_t n, std::size_t other) const {
    return from_other(scored_.results[n], scored_.results[other]);
  }
  /// Of cell n from another one, kept as what supports the choice. @return in words
  std::string supported(std::size_t n, std::size_t other, Json& choice) const {
    const LossDifferences differences = between(n, other);
    choice["kl"] = ratio_of(differences.kl, differences.of_parts);
    choice["kl"]["relative_to"] = other;
    return relative_text(choice["kl"], cell(other), differences);
  }

  void decide(std::size_t leader, Json& choice) const {
    const std::optional<std::size_t> next = next_to(leader);
    if (next && between(leader, *next).kl.size() < 2) {
      choice["verdict"] = "cannot be said of one sample; the least divergence is that of " + described(cell(leader));
      return;
    }
    Cells alike;
    for (const std::size_t n : std::span(rivals_).subspan(1)) {
      const LossDifferences differences = between(n, leader);
      if (!is_clear(ratio_of(differences.kl, differences.of_parts))) alike.push_back(n);
    }
    choice["alike"] = alike;
    std::size_t chosen = leader;
    for (const std::size_t n : alike)
      if (parts_of(scored_.cells[n]) < parts_of(scored_.cells[chosen])) chosen = n;
    choice["cell"] = chosen;
    choice["verdict"] =
        described(cell(chosen)) + ": " + (next ? reason(leader, chosen, *next, alike, choice) : "no other was scored");
  }

  /// The second of the rivals or, where the leader has none, the cell nearest to it on the documents that both have.
  std::optional<std::size_t> next_to(std::size_t leader) const {
    if (rivals_.size() > 1) return rivals_[1];
    std::optional<std::size_t> nearest;
    double least = 0;
    for (const std::size_t n : within_) {
      const double ratio = n == leader ? 0 : paired_mean(between(n, leader).kl).mean;
      if (n == leader || (nearest && ratio >= least)) continue;
      nearest = n;
      least = ratio;
    }
    return nearest;
  }

  std::string reason(std::size_t leader, std::size_t chosen, std::size_t next, const Cells& alike, Json& choice) const {
    if (chosen != leader)
      return "not distinguishable from " + name_of(cell(leader)) + " (" + supported(chosen, leader, choice) +
             "), and the plainer: chosen";
    if (alike.empty()) {
      const std::string support = supported(leader, next, choice);
      const std::string fewer = rivals_.size() > 1 ? "" : ", which was scored on fewer";
      return is_clear(choice["kl"]) ? support + ", the next" + fewer
                                    : "not distinguishable from " + name_of(cell(next)) + fewer + " (" + support + ")";
    }
    const std::string others = alike.size() == 1 ? "" : " and " + std::to_string(alike.size() - 1) + " more";
    return "not distinguishable from " + name_of(cell(alike.front())) + others + ", none of which is plainer (" +
           supported(leader, alike.front(), choice) + ")";
  }

  const ScoredCells& scored_;
  Cells within_, rivals_;
};

/// The relative loss of perplexity that a cell's interval ends at; nothing without one.
std::optional<double> most_loss(const Json& cell) {
  const Json& interval = cell.at("ratio").at("interval");
  if (interval.is_null()) return std::nullopt;
  return interval[1].get<double>() - 1;
}

std::string over_text(const ScoredCells& scored, std::size_t n) {
  return " over " + samples_text(from_full(scored.results[n]));
}

Json smallest_choice(const ScoredCells& scored, double loss) {
  std::optional<std::size_t> smallest, nearest;
  for (std::size_t n = 0; n < scored.cells.size(); ++n) {
    const Json& cell = scored.json[n];
    if (!cell.at("front").get<bool>()) continue;
    const auto most = most_loss(cell);
    if (!most) continue;
    if (!nearest || *most < *most_loss(scored.json[*nearest])) nearest = n;
    const bool less = !smallest || cell.at("bytes_ratio") < scored.json[*smallest].at("bytes_ratio");
    if (*most <= loss && less) smallest = n;
  }
  Json choice{
      {"loss", loss}, {"cell", nullptr}, {"documents", 0}, {"verdict", "cannot be said: no cache has an interval"}};
  if (!nearest) return choice;
  const std::size_t named = smallest.value_or(*nearest);
  choice["documents"] = scored.results[named].scores.kl.size();
  if (smallest) choice["cell"] = *smallest;
  const std::string text = described(scored.json[named]) + over_text(scored, named);
  choice["verdict"] = smallest ? text : "no cache of the front is known to cost so little; nearest is " + text;
  return choice;
}

}  // namespace

Parts parts_of(const CompareCell& cell) {
  if (cell.method == "elitekv" || cell.method == "transform") return Parts::kFactors;
  if (cell.calibrated || !cell.config.empty()) return Parts::kCalibrated;
  if (cell.method == "full") return Parts::kStorage;
  return cell.store.empty() ? Parts::kMethod : Parts::kComposed;
}

Json best_choices(const ScoredCells& scored, std::span<const double> budgets) {
  Json all = Json::array();
  for (const double budget : budgets) all.push_back(BestChoice(scored, budget).json(budget));
  return all;
}

Json smallest_choices(const ScoredCells& scored, std::span<const double> losses) {
  Json all = Json::array();
  for (const double loss : losses) all.push_back(smallest_choice(scored, loss));
  return all;
}

}  // namespace kvs
