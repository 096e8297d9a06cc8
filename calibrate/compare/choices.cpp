#include "calibrate/compare/choices.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/compare/calibration.h"
#include "calibrate/compare/comparison_text.h"
#include "calibrate/compare/evidence.h"
#include "calibrate/compare/racing.h"
#include "eval/paired_difference.h"

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
  return name_of(cell) + ", perplexity × " + times_text(ratio) + interval_text(ratio.at("interval"), "%.4f") +
         text_of(", KL %.4f", cell.at("kl").get<double>());
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

/// How many cells of a budget no time was left for.
std::size_t left_behind(const ScoredCells& scored, double budget) {
  return static_cast<std::size_t>(std::ranges::count_if(scored.json, [&](const Json& cell) {
    return cell.at("budget") == budget &&
           (cell.at("error") == kNoTimeToScore || cell.at("error") == kNoTimeToCalibrate);
  }));
}

/// Why nothing is the best of a budget: no time was left for its cells, or all need more; then what comes nearest.
std::string unreached_text(const ScoredCells& scored, double budget) {
  const Json* nearest = nullptr;
  double least = 0;
  if (left_behind(scored, budget) > 0) return "no time was left to score what would reach it";
  for (const Json& cell : scored.json) {
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
    const std::size_t left = left_behind(scored_, budget);
    choice["unscored"] = left;
    if (rivals_.empty()) {
      choice["verdict"] = unreached_text(scored_, budget);
      return choice;
    }
    const std::size_t leader = rivals_.front();
    choice["leader"] = leader;
    choice["documents"] = scored_.results[leader].scores.kl.size();
    decide(leader, choice);
    if (left > 0)
      choice["verdict"] = choice["verdict"].get<std::string>() + "; no time was left to try " + std::to_string(left) +
                          (left == 1 ? " other" : " others") + " of this budget";
    return choice;
  }

 private:
  const Json& cell(std::size_t n) const { return scored_.json[n]; }
  LossDifferences between(std::size_t n, std::size_t other) const {
    return from_other(scored_.results[n], scored_.results[other]);
  }
  std::size_t documents_of(std::size_t n) const { return scored_.results[n].scores.kl.size(); }
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
    const Cells alike = alike_to(leader);
    choice["alike"] = alike;
    std::size_t chosen = leader;
    for (const std::size_t n : alike)
      if (parts_of(scored_.cells[n]) < parts_of(scored_.cells[chosen])) chosen = n;
    choice["cell"] = chosen;
    choice["verdict"] =
        described(cell(chosen)) + ": " + (next ? reason(leader, chosen, *next, alike, choice) : "no other was scored");
  }

  /// The cells that are not clearly behind the leader: its rivals, then those that time left behind on fewer documents.
  Cells alike_to(std::size_t leader) const {
    Cells others(rivals_.begin() + 1, rivals_.end());
    std::ranges::copy_if(within_, std::back_inserter(others), [&](std::size_t n) {
      return documents_of(n) < documents_of(leader) && !scored_.results[n].stopped && between(n, leader).kl.size() > 1;
    });
    std::erase_if(others, [&](std::size_t n) {
      const LossDifferences differences = between(n, leader);
      return is_above(ratio_of(differences.kl, differences.of_parts));
    });
    return others;
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
    if (chosen != leader) return not_told(chosen, leader, "", choice) + ", and the plainer: chosen";
    if (!alike.empty()) {
      const std::string others = alike.size() == 1 ? "" : " and " + std::to_string(alike.size() - 1) + " more";
      return not_told(leader, alike.front(), others + ", none of which is plainer", choice);
    }
    const std::string fewer = rivals_.size() > 1 ? "" : ", which was scored on fewer";
    const std::string support = supported(leader, next, choice);
    return is_clear(choice["kl"]) ? support + ", the next" + fewer
                                  : "not distinguishable from " + name_of(cell(next)) + fewer + " (" + support + ")";
  }

  /// "not distinguishable from NAME", what else is said of it, and the evidence. The mean KL may differ in the other
  /// direction than most documents do.
  std::string not_told(std::size_t n, std::size_t other, const std::string& more, Json& choice) const {
    const std::string support = supported(n, other, choice);
    const bool lower = mean_kl(scored_.results[n].scores) < mean_kl(scored_.results[other].scores);
    const std::string against = is_clear(choice["kl"]) && documents_of(n) == documents_of(other)
                                    ? std::string(", but the mean KL is ") + (lower ? "lower" : "higher")
                                    : "";
    return "not distinguishable from " + name_of(cell(other)) + more + " (" + support + against + ")";
  }

  const ScoredCells& scored_;
  Cells within_, rivals_;
};

/// The relative loss of perplexity that a cell's interval ends at; nothing without one.
std::optional<double> max_loss(const Json& cell) {
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
    const auto most = max_loss(cell);
    if (!most) continue;
    if (!nearest || *most < *max_loss(scored.json[*nearest])) nearest = n;
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
  choice["verdict"] = smallest ? text
                               : "no cache of the front is known to cost so little; nearest is " + text +
                                     text_of(", whose interval ends at %+.3g %%", 100 * *max_loss(scored.json[named]));
  return choice;
}

}  // namespace

Parts parts_of(const CompareCell& cell) {
  const Method* const method = find_method(cell.method);
  if (method == nullptr || method->make == nullptr) return Parts::kFactors;
  if (cell.calibrated || !cell.config.empty()) return Parts::kCalibrated;
  if (method == &kFullMethod) return Parts::kStorage;
  return cell.type.empty() ? Parts::kMethod : Parts::kComposed;
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
