// SPDX-License-Identifier: Apache-2.0
#include "results/recommendation.h"

#include <algorithm>
#include <span>

#include "core/nearest.h"
#include "results/comparison_words.h"

namespace kvs::inline results {
namespace {

/// Formats bytes with three digits: "94.4 MB".
std::string megabytes(double bytes) { return text_of("%.3g MB", 1e-6 * bytes); }

std::string share_percent(double share) { return text_of("%.1f %%", 100 * share); }

/// Returns what a cache changes, in words.
std::string cost_text(const Recommendation::Cache& cache) {
  const ScoredLoss& loss = cache.loss;
  std::string text = "  perplexity × " + times_text(loss.ratio) + interval_text(loss.ratio.interval, "%.4f") +
                     ", KL divergence " + number_text("%.4f", loss.kl) + " nats a token\n";
  if (const auto& tail = loss.tail) {
    text += "  99 % of the tokens are below " + number_text("%.4f", tail->p99) + ", 99.9 % below " +
            number_text("%.4f", tail->p999) + ", the largest is " + number_text("%.3f", tail->largest.kl) +
            " at token " + std::to_string(tail->largest.position) + " of document " +
            std::to_string(tail->largest.document) + "\n";
    text += "  same first choice in " + share_percent(loss.top1) + " of the tokens (95 % " +
            share_percent(tail->top1_interval.first) + " to " + share_percent(tail->top1_interval.second) + ")\n";
  }
  if (cache.retrieval)
    text += "  " + cache.retrieval->task + ": " + share_percent(cache.retrieval->accuracy) + " of " +
            std::to_string(cache.retrieval->questions) + " questions answered\n";
  return text;
}

/// Returns false if the time limit left out caches.
bool is_complete(const Recommendation& one) { return one.unmeasured.empty() && one.shortened.empty(); }

std::string rule_text(const Recommendation& one) {
  const std::string among = is_complete(one) ? "" : " of the measured caches";
  if (one.max_bytes) return "least KL divergence" + among + " within " + megabytes(*one.max_bytes);
  return "fewest bytes" + among + " with a KL divergence of at most " + text_of("%.3g", one.max_kl) + " nats a token";
}

/// Returns each label once, with the number of its caches if there are several.
std::vector<std::string> counted(const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (const std::string& label : labels) {
    const auto same = std::ranges::count(labels, label);
    const std::string name = same == 1 ? label : label + " (" + std::to_string(same) + ")";
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Returns a line of at most six labels: "  PREFIX: a, b, c and 4 others"; empty without labels.
std::string labels_text(const std::string& prefix, const std::vector<std::string>& labels) {
  constexpr std::size_t kShown = 6;
  if (labels.empty()) return "";
  const std::vector<std::string> names = counted(labels);
  const std::size_t shown = std::min(kShown, names.size());
  return "  " + prefix + ": " + listed(std::span(names).first(shown)) +
         (shown < names.size() ? " and " + std::to_string(names.size() - shown) + " others" : "") + "\n";
}

/// Returns a warning if the tokens are too few to know that the cache is safe.
std::string doubt_text(const Recommendation::Cache& cache) {
  const ScoredLoss& loss = cache.loss;
  const auto& tail = loss.tail;
  if (!tail || tail->top1_interval.first >= kUnsafeTop1 || loss.is_unsafe()) return "";
  return "  " + std::to_string(loss.tokens_scored) + " tokens are few: the interval of equal first choices " +
         "includes shares below " + share_percent(kUnsafeTop1) + "; longer texts narrow it\n";
}

/// Returns the recommendation where no cache is chosen.
std::string stay_text(const Recommendation& one) {
  if (!one.refusal.empty())
    return "Stay at 16 bits: no cache of " + one.engine + " can be measured on this model: " + one.refusal;
  if (!one.safer && one.unsafe.empty())
    return "No recommendation: " + std::string(one.unmeasured.empty() ? "" : "within the time limit ") +
           "no cache of " + one.engine + " was measured.";
  return "Stay at 16 bits: no " + std::string(is_complete(one) ? "" : "measured ") + "cache of " + one.engine +
         (one.max_bytes ? " is within " + megabytes(*one.max_bytes)
                        : " has a KL divergence of at most " + text_of("%.3g", one.max_kl) + " nats a token") +
         ".";
}

std::string chosen_text(const Recommendation& one) {
  std::string text = advice(one) + "\n";
  if (!one.chosen) return text;
  if (const std::string reason = unsafe_reason(one.chosen->loss); !reason.empty())
    text += "  not safe: " + reason + (one.safer ? "; the next safer cache is " + one.safer->label : "") + "\n";
  text += cost_text(*one.chosen);
  if (one.use) {
    text += "  " + one.engine + (one.use->flags.empty() ? "" : ": " + one.use->flags) + "\n";
    for (const std::string& note : one.use->notes) text += "    " + note + "\n";
  }
  return text;
}

std::string row_text(const std::string& role, const Recommendation::Cache& cache) {
  const auto& tail = cache.loss.tail;
  return text_of("  %-14s%-22s%9s %8.4f %8s %8s  %6s\n", role.c_str(), cache.label.c_str(),
                 megabytes(cache.bytes).c_str(), cache.loss.kl, tail ? number_text("%.4f", tail->p99).c_str() : "",
                 tail ? number_text("%.3f", tail->largest.kl).c_str() : "", share_percent(cache.loss.top1).c_str());
}

/// Returns a cache that was measured on all documents, or null.
const Recommendation::Cache* measured_cache(const Recommendation& one) {
  if (one.chosen) return &*one.chosen;
  if (one.safer) return &*one.safer;
  return one.unsafe.empty() ? nullptr : &one.unsafe.front();
}

}  // namespace

std::string advice(const Recommendation& one) {
  if (!one.chosen) return stay_text(one);
  return "Use " + one.chosen->label + ": " + megabytes(one.chosen->bytes) + " at " + std::to_string(one.sized) +
         " tokens, " + share_percent(one.chosen->bytes / one.full_bytes) + " of " + megabytes(one.full_bytes) + " (" +
         rule_text(one) + ").";
}

std::string measured_text(const Recommendation& one) {
  const Recommendation::Cache* measured = measured_cache(one);
  if (measured == nullptr) return "";
  std::string text = "measured on " + std::to_string(measured->documents) +
                     (measured->documents == 1 ? " document" : " documents") + " of " + std::to_string(one.tokens) +
                     " tokens, the last " + std::to_string(one.scored) + " of each scored";
  if (one.tokens < one.context)
    text += "; the text is too short for a context of " + std::to_string(one.context) + " tokens";
  return text;
}

std::string to_text(const Recommendation& one) {
  std::string text = one.head.model.name + " in " + one.engine + " (" + one.engine_version + ")\n" + chosen_text(one);
  if (const std::string measured = measured_text(one); !measured.empty())
    text += "  " + measured + "\n" + (one.chosen ? doubt_text(*one.chosen) : "");
  text += labels_text("not measured in the time limit", one.unmeasured);
  text += labels_text("measured on fewer documents, not candidates", one.shortened);
  if (one.chosen || one.safer || !one.unsafe.empty())
    text += text_of("  %-14s%-22s%9s %8s %8s %8s  %6s\n", "", "", "bytes", "KL", "99 %", "largest", "top 1");
  if (one.safer) text += row_text(one.chosen ? "next safer" : "least KL", *one.safer);
  if (one.chosen) text += row_text("recommended", *one.chosen);
  if (one.smaller) text += row_text("next smaller", *one.smaller);
  for (const Recommendation::Cache& cache : one.unsafe) text += row_text("do not use", cache);
  for (const std::string& file : one.files) text += "wrote " + file + "\n";
  return text;
}

}  // namespace kvs::inline results
