// SPDX-License-Identifier: Apache-2.0
#include "export/report/parts.h"

#include <cmath>
#include <numeric>

#include "core/exponential.h"
#include "export/report/markup.h"

namespace kvs::inline report {

Markup figure(const Markup& drawings, const Markup& caption, const std::string& command, bool wide) {
  return element("figure", {{"class", wide ? "wide-figure" : ""}},
                 element("div", {{"class", "drawings"}}, drawings) +
                     element("figcaption", element("p", caption) + command_block(command)));
}

Markup command_block(const std::string& command) {
  if (command.empty()) return {};
  return element("details", {{"class", "command"}},
                 element("summary", "Command") + element("pre", {{"tabindex", "0"}}, element("code", command)));
}

Markup folded(const std::string& summary, const Markup& content) {
  return element("details", element("summary", summary) + content);
}

Range as_change(const Range& ratio) {
  return ratio ? std::optional(std::pair(ratio->first - 1, ratio->second - 1)) : std::nullopt;
}

std::string perplexity_words(double nll) {
  const double ppl = std::exp(nll);
  return std::isfinite(ppl) ? shown(ppl, 4) : exponential_text(nll);
}

std::string perplexity_words(double nll, double error) {
  const double ppl = std::exp(nll);
  if (!std::isfinite(ppl)) return exponential_with_error(nll, error);
  return shown(ppl, 4) + (error > 0 ? " \u00B1\u00A0" + shown(ppl * error, 2) : "");
}

std::string change_words(double change, const Range& interval, bool over_parts) {
  if (!interval) return shown_change(change);
  const std::string over = over_parts ? " over parts" : "";
  return shown_change(change) + " (95\u00A0%" + over + ": " + shown_range(*interval) + ")";
}

std::string zero_note(const Range& interval) {
  return interval && interval->first <= 0 && interval->second >= 0 ? " (not told from 0)" : "";
}

double mean_of(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace kvs::inline report
