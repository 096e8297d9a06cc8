// SPDX-License-Identifier: Apache-2.0
#include "results/comparison.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "core/nearest.h"
#include "results/comparison_words.h"

namespace kvs::inline results {
namespace {

/// Formats the start of a line: "  q8_0                              ".
std::string label_text(const std::string& label) { return text_of("  %-34s", label.c_str()); }

/// Formats the second column: "storage      ".
std::string form_text(const std::string& form) { return text_of("%-14s", form.c_str()); }

/// @param one  with scores
std::string configuration_line(const ComparedConfiguration& one) {
  std::string text = label_text(one.label) + form_text(one.form);
  const auto& [bytes_ratio, tokens, ppl, nll, kl, top1, ratio, tail] = *one.loss;
  text += text_of("%6.1f %%  %9s %8.4f %8s  %5.1f %%", 100 * bytes_ratio, times_text(ratio).c_str(), kl,
                  tail ? number_text("%.4f", tail->p99).c_str() : "", 100 * top1);
  text += ratio.interval ? text_of("  %8s–%-8s", number_text("%.4f", ratio.interval->first).c_str(),
                                   number_text("%.4f", ratio.interval->second).c_str())
                         : std::string(20, ' ');
  text += text_of(" %3zu", one.documents);
  if (const auto& loss = one.over_best) {
    text += text_of("  × %.3g", loss->kl.mean);
    if (const auto& range = loss->kl.interval) text += text_of(" (%.3g–%.3g)", range->first, range->second);
  }
  if (one.pareto_front) text += "  front";
  if (one.stopped) text += "  stopped";
  return text + (one.engines.empty() ? "" : "  " + listed(one.engines)) + '\n';
}

/// Formats "  REASON: a, b, c" in lines of at most 110 characters.
std::string reason_text(const std::string& reason, const std::vector<std::string>& labels) {
  constexpr std::size_t kWidth = 110;
  std::string text, line = "  " + reason + ": ";
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const std::string label = labels[n] + (n + 1 < labels.size() ? "," : "");
    if (line.size() + 1 + label.size() > kWidth) {
      text += line + '\n';
      line = "   ";
    }
    line += (line.back() == ' ' ? "" : " ") + label;
  }
  return text + line + '\n';
}

/// Formats the configurations of a budget: the scored ones, then those without scores by reason.
std::string budget_text(std::span<const ComparedConfiguration* const> configurations) {
  std::string text;
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const ComparedConfiguration* one : configurations) {
    if (one->loss) {
      text += configuration_line(*one);
      continue;
    }
    const std::string reason = one->error.value_or("");
    const auto same = std::ranges::find(reasons, reason, [](const auto& listed) { return listed.first; });
    (same == reasons.end() ? reasons.emplace_back(reason, std::vector<std::string>()) : *same)
        .second.push_back(one->label);
  }
  for (const auto& [reason, labels] : reasons)
    text += labels.size() == 1 ? label_text(labels.front()) + reason + '\n' : reason_text(reason, labels);
  return text;
}

/// Formats the configurations, ordered by budget, documents and divergence.
std::string configurations_text(const ComparisonResult& result) {
  std::vector<const ComparedConfiguration*> order;
  for (const ComparedConfiguration& one : result.configurations) order.push_back(&one);
  std::ranges::stable_sort(order, {}, [](const ComparedConfiguration* one) {
    return std::tuple(-one->budget, -static_cast<std::int64_t>(one->documents), one->loss ? one->loss->kl : 0);
  });
  std::string text = text_of("  %-34s%-14s%8s  %9s %8s %8s  %7s  %-18s %3s  %s\n", "", "form", "bytes", "ppl ratio",
                             "KL", "99 %", "top 1", "95 % of the ratio", "doc", "KL × best's (95 %), engines");
  text += text_of("bytes of documents of %zu tokens\n", result.tokens);
  for (auto first = order.begin(); first != order.end();) {
    const auto last =
        std::find_if(first, order.end(), [&](const auto* one) { return one->budget != (*first)->budget; });
    text += text_of("budget %.3g %%\n", 100 * (*first)->budget) + budget_text(std::span(first, last));
    first = last;
  }
  return text;
}

/// Describes the bytes that all sequences share.
std::string shared_text(const std::vector<ComparedConfiguration>& configurations) {
  std::string text;
  for (const ComparedConfiguration& one : configurations) {
    if (one.shared_bytes == 0 || !one.loss) continue;
    text += (text.empty() ? "held once for all sequences, in addition to these bytes: " : ", ") + one.label +
            text_of(" %.3g MB", 1e-6 * static_cast<double>(one.shared_bytes));
  }
  return text.empty() ? text : text + '\n';
}

std::string choices_text(const ComparisonResult& result) {
  std::string text = "best\n";
  for (const BestChoice& best : result.best) text += text_of("  %5.3g %%: ", 100 * best.budget) + best.verdict + '\n';
  if (!result.smallest.empty()) text += "smallest that costs at most\n";
  for (const SmallestChoice& smallest : result.smallest)
    text += text_of("  %5.3g %%: ", 100 * smallest.loss) + smallest.verdict + '\n';
  return result.left_out.verdict ? text + *result.left_out.verdict + '\n' : text;
}

std::string gains_text(const std::vector<ComparedConfiguration>& configurations) {
  const auto of = [](const SampledRatio& ratio) {
    return text_of("%7.4f", ratio.mean) +
           (ratio.interval ? interval_text(ratio.interval, "%.4f") : std::string(18, ' '));
  };
  std::string text;
  for (const ComparedConfiguration& one : configurations)
    if (const auto& gain = one.over_standard)
      text += label_text(one.label) + text_of("%6.1f %%  ", 100 * one.budget) + of(gain->ppl) + "  " + of(gain->kl) +
              text_of(" %3zu\n", gain->documents);
  return text.empty() ? text
                      : "calibrated, relative to the paper's settings: budget, perplexity, KL, documents\n" + text;
}

std::string retrieval_text(const ComparisonResult& result) {
  const auto& full = result.full.retrieval;
  if (!full) return "";
  const auto answers = [](const std::string& label, double bytes, const Retrieval& found) {
    return label_text(label) +
           text_of("%6.1f %%  %5.1f %%  %8.4f\n", 100 * bytes, 100 * found.accuracy, found.log_likelihood);
  };
  std::string text = full->task + text_of(", %zu question%s", full->questions, full->questions == 1 ? "" : "s") +
                     ": bytes, accuracy, log-likelihood of the answer per token\n" + answers("full cache", 1, *full);
  for (const ComparedConfiguration& one : result.configurations)
    if (one.retrieval && one.loss) text += answers(one.label, one.loss->bytes_ratio, *one.retrieval);
  return text;
}

std::string speeds_text(const std::optional<ComparisonSpeeds>& speeds) {
  if (!speeds || speeds->configurations.empty()) return "";
  std::string text = text_of("decoding at a budget: tokens/s, as a multiple of the full cache's %.1f\n",
                             speeds->configurations.front().full_decode_tokens_per_second);
  for (const ComparisonSpeeds::Speed& one : speeds->configurations)
    text += label_text(one.label) +
            text_of("%6.1f %%  %7.1f  × %.2f\n", 100 * one.budget, one.decode_tokens_per_second, one.ratio);
  return text;
}

std::string heading_of(const ComparisonResult& result) {
  const std::size_t all = result.documents, scored = std::max<std::size_t>(1, result.max_documents());
  return result.head.model.name + " · " + (scored < all ? std::to_string(scored) + " of " : "") + std::to_string(all) +
         (all == 1 ? " document of " : " documents of ") + std::to_string(result.tokens) + " tokens, the last " +
         std::to_string(result.tokens - result.prefix - 1) + " scored";
}

}  // namespace

void SampledRatio::check(const SampledRatio& ratio, const JsonCursor& json) {
  if (ratio.mean <= 0) json.at("mean").fail("a number above 0");
}

void ScoredLoss::Ratio::check(const Ratio& ratio, const JsonCursor& json) {
  if (!ratio.ppl) return;
  if (*ratio.ppl <= 0) json.at("ppl").fail("a number above 0");
  if (ratio.interval && (*ratio.ppl < ratio.interval->first || *ratio.ppl > ratio.interval->second))
    json.at("interval").fail("an interval around the ratio");
}

void ComparedConfiguration::check(const ComparedConfiguration& one, const JsonCursor& json) {
  if (one.budget < 0) json.at("budget").fail("a number of at least 0");
  if (one.loss && one.loss->bytes_ratio <= 0) json.at("bytes_ratio").fail("a number above 0");
}

void ComparisonResult::check(const ComparisonResult& result, const JsonCursor& json) {
  const auto expect_indices = [&](const auto& choices, const char* name) {
    for (std::size_t n = 0; n < choices.size(); ++n)
      if (choices[n].configuration && *choices[n].configuration >= result.configurations.size())
        json.at(name).at(n).at(json.has("cells") ? "cell" : "configuration").fail("the index of a configuration");
  };
  expect_indices(result.best, "best");
  expect_indices(result.smallest, "smallest");
}

std::size_t ComparisonResult::max_documents() const {
  std::size_t most = 0;
  for (const ComparedConfiguration& one : configurations) most = std::max(most, one.documents);
  return most;
}

std::string to_text(const ComparisonResult& result, const std::optional<ComparisonSpeeds>& speeds) {
  return configurations_text(result) + shared_text(result.configurations) + choices_text(result) +
         gains_text(result.configurations) + retrieval_text(result) + speeds_text(speeds);
}

std::vector<TradePoint> trade_points(const ComparisonResult& result,
                                     const std::function<std::string(const ComparedConfiguration&)>& tooltip) {
  const std::size_t most = result.max_documents();
  std::vector<TradePoint> points;
  for (const ComparedConfiguration& one : result.configurations)
    if (one.loss && (one.documents == most || one.pareto_front))
      points.push_back({.label = one.label,
                        .method = one.method == "full" && one.type ? kQuantisedAlone : one.method,
                        .stored = one.type.has_value(),
                        .bytes = one.loss->bytes_ratio,
                        .loss = one.loss->kl,
                        .tooltip = tooltip ? tooltip(one) : "",
                        .interval = {},
                        .pareto_front = one.pareto_front});
  return points;
}

draw::Chart comparison_chart(const ComparisonResult& result, std::span<const std::string> methods) {
  return pareto_chart(heading_of(result), "Caches by the bytes that they hold and what they lose.", divergence_scale(),
                      trade_points(result), methods);
}

}  // namespace kvs::inline results
