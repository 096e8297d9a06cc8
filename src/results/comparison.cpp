#include "results/comparison.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "results/comparison_words.h"

namespace kvs {
namespace {

/// Formats the start of a line: "  q8_0                              ".
std::string label_text(const std::string& label) { return text_of("  %-34s", label.c_str()); }

std::string cell_line(const ComparedCell& cell) {
  std::string text = label_text(cell.label);
  if (!cell.loss) return text + cell.error.value_or("") + '\n';
  const auto& [bytes_ratio, tokens, ppl, nll, kl, top1, ratio] = *cell.loss;
  text += text_of("%6.1f %%  %9s %8.4f  %5.1f %%", 100 * bytes_ratio, times_text(ratio).c_str(), kl, 100 * top1);
  text += ratio.interval ? text_of("  %8s–%-8s", number_text("%.4f", ratio.interval->first).c_str(),
                                   number_text("%.4f", ratio.interval->second).c_str())
                         : std::string(20, ' ');
  text += text_of(" %3zu", cell.documents);
  if (const auto& loss = cell.over_best) {
    text += text_of("  × %.3g", loss->kl.mean);
    if (const auto& range = loss->kl.interval) text += text_of(" (%.3g–%.3g)", range->first, range->second);
  }
  if (cell.front) text += "  front";
  if (cell.stopped) text += "  stopped";
  return text + '\n';
}

/// Formats the cells, ordered by budget, documents and divergence.
std::string cells_text(const ComparisonResult& result) {
  std::vector<const ComparedCell*> order;
  for (const ComparedCell& cell : result.cells) order.push_back(&cell);
  std::ranges::stable_sort(order, {}, [](const ComparedCell* cell) {
    return std::tuple(-cell->budget, -static_cast<std::int64_t>(cell->documents), cell->loss ? cell->loss->kl : 0);
  });
  std::string text = text_of("  %-34s%8s  %9s %8s  %7s  %-18s %3s  %s\n", "", "bytes", "ppl ratio", "KL", "top 1",
                             "95 % of the ratio", "doc", "KL × best's (95 %)");
  text += text_of("bytes of documents of %zu tokens\n", result.tokens);
  double budget = 0;
  for (const ComparedCell* cell : order) {
    if (cell->budget != budget) text += text_of("budget %.3g %%\n", 100 * cell->budget);
    budget = cell->budget;
    text += cell_line(*cell);
  }
  return text;
}

/// Describes the bytes that all sequences share.
std::string shared_text(const std::vector<ComparedCell>& cells) {
  std::string text;
  for (const ComparedCell& cell : cells) {
    if (cell.shared_bytes == 0 || !cell.loss) continue;
    text += (text.empty() ? "held once for all sequences, beside these bytes: " : ", ") + cell.label +
            text_of(" %.3g MB", 1e-6 * static_cast<double>(cell.shared_bytes));
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

std::string gains_text(const std::vector<ComparedCell>& cells) {
  const auto of = [](const SampledRatio& ratio) {
    return text_of("%7.4f", ratio.mean) +
           (ratio.interval ? interval_text(ratio.interval, "%.4f") : std::string(18, ' '));
  };
  std::string text;
  for (const ComparedCell& cell : cells)
    if (const auto& gain = cell.over_standard)
      text += label_text(cell.label) + text_of("%6.1f %%  ", 100 * cell.budget) + of(gain->ppl) + "  " + of(gain->kl) +
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
  for (const ComparedCell& cell : result.cells)
    if (cell.retrieval && cell.loss) text += answers(cell.label, cell.loss->bytes_ratio, *cell.retrieval);
  return text;
}

std::string speeds_text(const std::optional<ComparisonSpeeds>& speeds) {
  if (!speeds || speeds->cells.empty()) return "";
  std::string text = text_of("decoding at a budget: tokens/s, as a multiple of the full cache's %.1f\n",
                             speeds->cells.front().full_decode_tokens_per_second);
  for (const ComparisonSpeeds::Cell& cell : speeds->cells)
    text += label_text(cell.label) +
            text_of("%6.1f %%  %7.1f  × %.2f\n", 100 * cell.budget, cell.decode_tokens_per_second, cell.ratio);
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

void ComparedCell::check(const ComparedCell& cell, const JsonCursor& json) {
  if (cell.budget < 0) json.at("budget").fail("a number of at least 0");
  if (cell.loss && cell.loss->bytes_ratio <= 0) json.at("bytes_ratio").fail("a number above 0");
}

void ComparisonResult::check(const ComparisonResult& result, const JsonCursor& json) {
  const auto expect_cell = [&](const std::optional<std::size_t>& cell, const char* choices, std::size_t n) {
    if (cell && *cell >= result.cells.size()) json.at(choices).at(n).at("cell").fail("the index of a cell");
  };
  for (std::size_t n = 0; n < result.best.size(); ++n) expect_cell(result.best[n].cell, "best", n);
  for (std::size_t n = 0; n < result.smallest.size(); ++n) expect_cell(result.smallest[n].cell, "smallest", n);
}

std::size_t ComparisonResult::max_documents() const {
  std::size_t most = 0;
  for (const ComparedCell& cell : cells) most = std::max(most, cell.documents);
  return most;
}

std::string to_text(const ComparisonResult& result, const std::optional<ComparisonSpeeds>& speeds) {
  return cells_text(result) + shared_text(result.cells) + choices_text(result) + gains_text(result.cells) +
         retrieval_text(result) + speeds_text(speeds);
}

std::vector<TradePoint> trade_points(const ComparisonResult& result,
                                     const std::function<std::string(const ComparedCell&)>& told) {
  const std::size_t most = result.max_documents();
  std::vector<TradePoint> points;
  for (const ComparedCell& cell : result.cells)
    if (cell.loss && (cell.documents == most || cell.front))
      points.push_back({.label = cell.label,
                        .method = cell.method == "full" && cell.type ? "quantised alone" : cell.method,
                        .stored = cell.type.has_value(),
                        .bytes = cell.loss->bytes_ratio,
                        .loss = cell.loss->kl,
                        .told = told ? told(cell) : "",
                        .interval = {},
                        .front = cell.front});
  return points;
}

draw::Chart comparison_chart(const ComparisonResult& result, std::span<const std::string> methods) {
  return tradeoff_chart(heading_of(result), "Caches by the bytes that they hold and what they lose.",
                        divergence_scale(), trade_points(result), methods);
}

}  // namespace kvs
