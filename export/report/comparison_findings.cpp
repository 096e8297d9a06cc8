// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "export/report/comparison.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/settings.h"

namespace kvs::inline report {
namespace {

/// A cache that more than doubles perplexity is useless.
constexpr double kUseless = 1.0;
constexpr std::size_t kMaxNamed = 4;  // methods in a sentence

bool is_measured(const ComparedConfiguration& one) { return one.loss && one.loss->ratio.ppl && !one.error; }
double change_of(const ComparedConfiguration& one) { return *one.loss->ratio.change(); }

/// Returns the maximum number of documents of a configuration. Others with fewer cannot be compared with it.
std::size_t max_documents(std::span<const ComparedConfiguration* const> configurations) {
  std::size_t most = 0;
  for (const ComparedConfiguration* one : configurations)
    if (!one->stopped) most = std::max(most, one->documents);
  return most;
}

/// Returns the measured configurations of a budget, least divergence first.
ComparedList measured_configurations(const ComparisonResult& result, double budget) {
  ComparedList configurations;
  for (const ComparedConfiguration& one : result.configurations)
    if (one.budget == budget && is_measured(one)) configurations.push_back(&one);
  std::ranges::stable_sort(configurations, {}, [](const ComparedConfiguration* one) { return one->loss->kl; });
  return configurations;
}

/// Returns the change of perplexity of a configuration with its interval.
std::string cost_of(const ComparedConfiguration& one) {
  return loss_words(one) + (!one.loss->ratio.interval && one.documents == 1 ? " (one document, no interval)" : "");
}

/// Returns a budget in words: "half", "a quarter", "34.4 %".
std::string size_words(double budget) {
  constexpr std::array<std::pair<double, const char*>, 4> kWords{
      {{0.75, "three quarters"}, {0.5, "half"}, {0.25, "a quarter"}, {0.125, "an eighth"}}};
  for (const auto& [share, words] : kWords)
    if (budget == share) return words;
  return shown_percent(budget);
}

std::string at_budget(const ComparisonResult& result, double budget) {
  std::string usable, useless;
  std::size_t named = 0;
  const auto configurations = measured_configurations(result, budget);
  const std::size_t documents = max_documents(configurations);
  for (const ComparedConfiguration* one : configurations) {
    if (change_of(*one) > kUseless) {
      useless += (useless.empty() ? "" : ", ") + spoken(one->label) + " (" + shown_change(change_of(*one)) +
                 (one->documents < documents ? ", on " + counted(one->documents, "document") : "") + ")";
    } else if (!one->stopped && one->documents == documents && named++ < kMaxNamed) {
      const bool first = named == 1;
      usable += (first ? "perplexity changes with " : ", with ") + spoken(one->label) + " by " + cost_of(*one);
    }
  }
  if (!useless.empty()) useless = "not usable on this model without training: " + useless;
  const std::string words = usable + (usable.empty() || useless.empty() ? "" : "; ") + useless;
  const std::string where =
      !usable.empty() && documents < result.documents ? "on " + documents_of(result, documents) + ", " : "";
  return words.empty() ? words : "At " + size_words(budget) + " of the bytes, " + where + words + ".";
}

/// Compares calibrated settings with the papers' settings at the same bytes.
std::string gained(const ComparisonResult& result) {
  std::size_t pairs = 0, better = 0, clear = 0;
  const ComparedConfiguration* best = nullptr;
  for (const ComparedConfiguration& one : result.configurations) {
    if (!one.over_standard || !is_measured(one)) continue;
    const SampledRatio& ppl = one.over_standard->ppl;
    ++pairs;
    better += ppl.mean < 1 ? 1 : 0;
    clear += ppl.interval && ppl.interval->second < 1 ? 1 : 0;
    if (change_of(one) <= kUseless && (best == nullptr || ppl.mean < best->over_standard->ppl.mean)) best = &one;
  }
  if (pairs == 0) return "";
  const std::string words = "Calibration beats the settings of the paper in " + shown_count(better) + " of " +
                            counted(pairs, "pair") + " of the same size, clearly in " + shown_count(clear);
  if (best == nullptr || best->over_standard->ppl.mean >= 1) return words + ".";
  const SampledRatio& ppl = best->over_standard->ppl;
  return words + "; most for " + spoken(best->label) + " at " + shown_percent(best->budget) + ": " +
         perplexity_change(ppl.mean - 1, as_change(ppl.interval), ppl.over == Samples::kParts) + ".";
}

}  // namespace

std::vector<std::string> comparison_findings(const ComparisonResult& result) {
  std::vector<std::string> findings;
  std::vector<double> budgets = result.budgets;
  std::ranges::sort(budgets, std::greater{});
  for (const double budget : budgets) findings.push_back(at_budget(result, budget));
  for (const BestChoice& best : result.best)
    findings.push_back("Best at " + shown_percent(best.budget) + " of the bytes: " + best.verdict);
  for (const SmallestChoice& smallest : result.smallest)
    findings.push_back("Smallest that costs at most " + shown_percent(smallest.loss) +
                       " of perplexity: " + smallest.verdict);
  if (result.left_out.verdict) findings.push_back(capitalised(*result.left_out.verdict) + ".");
  findings.push_back(gained(result));
  std::erase(findings, std::string());
  return findings;
}

}  // namespace kvs::inline report
