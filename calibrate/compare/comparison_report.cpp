#include "calibrate/compare/comparison_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "calibrate/compare/calibration.h"
#include "calibrate/compare/choices.h"
#include "calibrate/compare/comparison_text.h"
#include "calibrate/compare/evidence.h"
#include "eval/cache_quality.h"
#include "io/finite.h"

namespace kvs {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json cell_json(const CompareCell& cell, const CellResult& result, std::span<const double> budgets,
               const ModelConfig& model, std::size_t window) {
  const bool scored = !result.scores.kl.empty();
  Json json{{"label", cell.label},
            {"method", cell.method},
            {"store", text_or_null(cell.type)},
            {"budget", cell.budget},
            {"settings", cell.settings},
            {"config", text_or_null(cell.config)},
            {"calibrated", cell.calibrated},
            {"shared_bytes", cell.shared_bytes},
            {"documents", result.scores.kl.size()},
            {"stopped", result.stopped},
            {"front", false},
            {"retrieval", nullptr},
            {"error", nullptr},
            {"needs", cell.needs > 0 ? Json(cell.needs) : Json()}};
  if (const std::string& error = cell.error.empty() ? result.error : cell.error; !error.empty())
    json["error"] = error;
  else if (!scored)
    json["error"] = kNoTimeToScore;
  if (cell.budget == 0) json["budget"] = budgets.front();
  if (!scored) return json;
  const CacheQuality found = cache_quality(result.sum, model, window);
  if (!cell.config.empty())
    if (const double holding = min_holding(budgets, found.bytes_ratio); holding > 0) json["budget"] = holding;
  const Json all = to_json(found);
  for (const char* name : {"bytes_ratio", "tokens_scored", "ppl", "nll_mean", "kl", "top1"}) json[name] = all.at(name);
  const LossDifferences lost = from_full(result);
  json["ratio"] = ratio_of(lost.nll, lost.of_parts);
  json["ratio"].erase("mean");
  for (const char* name : {"ppl", "nll_difference"}) json["ratio"][name] = all.at("ratio").at(name);
  return json;
}

/// Whether a cell has the paper's standard settings where `calibrated` has those chosen on a text.
bool is_standard_of(const Json& cell, const Json& calibrated) {
  if (cell.at("calibrated").get<bool>() || !cell.at("config").is_null() || cell.at("documents") == 0) return false;
  return std::ranges::all_of(std::array{"method", "store", "budget"},
                             [&](const char* name) { return cell.at(name) == calibrated.at(name); });
}

/// Perplexity and divergence of a cell relative to another one's on the documents that both have.
Json relative_to(const CellResult& result, const CellResult& other) {
  const LossDifferences found = from_other(result, other);
  return {{"documents", found.documents},
          {"ppl", ratio_of(found.nll, found.of_parts)},
          {"kl", ratio_of(found.kl, found.of_parts)}};
}

/// Gives each calibrated cell what it gains over its paper's standard at the same budget.
void add_gains(Json& cells, std::span<const CellResult> results) {
  for (std::size_t n = 0; n < cells.size(); ++n) {
    Json& cell = cells[n];
    cell["over_standard"] = nullptr;
    if (!cell.at("calibrated").get<bool>() || cell.at("documents") == 0) continue;
    for (std::size_t other = 0; other < cells.size(); ++other)
      if (is_standard_of(cells[other], cell)) cell["over_standard"] = relative_to(results[n], results[other]);
  }
}

/// Gives each cell what it loses against the one of least divergence at its budget.
void add_losses(Json& cells, const Json& best, std::span<const CellResult> results) {
  for (std::size_t n = 0; n < cells.size(); ++n) {
    Json& cell = cells[n];
    cell["over_best"] = nullptr;
    if (cell.at("documents") == 0) continue;
    for (const Json& of : best)
      if (of.at("budget") == cell.at("budget") && !of.at("leader").is_null() && of.at("leader") != n)
        cell["over_best"] = relative_to(results[n], results[of.at("leader").get<std::size_t>()]);
  }
}

std::size_t max_documents(const Json& cells) {
  std::size_t most = 1;
  for (const Json& cell : cells) most = std::max(most, cell.at("documents").get<std::size_t>());
  return most;
}

/// What no time was left for: the calibrations, the numbers of cells that were not scored and of those that were scored
/// on fewer documents though nothing had beaten them, and all of it in words.
Json left_out(const Json& cells) {
  Json calibrations = Json::array();
  std::size_t unscored = 0, shortened = 0;
  const std::size_t most = max_documents(cells);
  std::string names, last;
  for (const Json& cell : cells) {
    if (cell.at("error") == kNoTimeToScore) ++unscored;
    const auto documents = cell.at("documents").get<std::size_t>();
    if (documents > 0 && documents < most && !cell.at("stopped").get<bool>()) ++shortened;
    if (cell.at("error") != kNoTimeToCalibrate) continue;
    const std::string label = cell.at("label"), share = text_of("%.3g %%", 100 * cell.at("budget").get<double>());
    calibrations.push_back({{"label", label}, {"budget", cell.at("budget")}});
    if (label == last)
      names += ", " + share;
    else
      names += (names.empty() ? " calibrating " : "; ") + label + " to " + share;
    last = label;
  }
  Json left{{"calibrations", std::move(calibrations)},
            {"unscored", unscored},
            {"shortened", shortened},
            {"verdict", nullptr}};
  const auto add = [&](const std::string& what) { names += (names.empty() ? " " : "; ") + what; };
  if (unscored > 0) add("scoring " + std::to_string(unscored) + " of " + std::to_string(cells.size()) + " cells");
  if (shortened > 0) add("scoring " + std::to_string(shortened) + " on as many documents as the others");
  if (names.empty()) return left;
  left["verdict"] = "no time was left for" + names;
  return left;
}

std::string cell_line(const Json& cell) {
  const std::string label = cell.at("label");
  std::string text = text_of("  %-34s", label.c_str());
  if (cell.at("documents") == 0) return text + cell.at("error").get<std::string>() + '\n';
  const auto real = [&](const char* name) { return cell.at(name).get<double>(); };
  text += text_of("%6.1f %%  %9s %8.4f  %5.1f %%", 100 * real("bytes_ratio"), times_text(cell.at("ratio")).c_str(),
                  real("kl"), 100 * real("top1"));
  const Json& interval = cell.at("ratio").at("interval");
  text += interval.is_null() ? std::string(20, ' ')
                             : text_of("  %8s–%-8s", number_text("%.4f", interval[0].get<double>()).c_str(),
                                       number_text("%.4f", interval[1].get<double>()).c_str());
  text += text_of(" %3zu", cell.at("documents").get<std::size_t>());
  if (const Json& loss = cell.at("over_best"); !loss.is_null()) {
    const Json &kl = loss.at("kl"), &range = kl.at("interval");
    text += text_of("  × %.3g", kl.at("mean").get<double>());
    if (!range.is_null()) text += text_of(" (%.3g–%.3g)", range[0].get<double>(), range[1].get<double>());
  }
  if (cell.at("front").get<bool>()) text += "  front";
  if (cell.at("stopped").get<bool>()) text += "  stopped";
  return text + '\n';
}

/// What the cells hold beside the bytes of each sequence.
std::string shared_text(const Json& cells) {
  std::string text;
  for (const Json& cell : cells) {
    const auto bytes = cell.at("shared_bytes").get<double>();
    if (bytes == 0 || cell.at("documents") == 0) continue;
    text += (text.empty() ? "held once for all sequences, beside these bytes: " : ", ") +
            cell.at("label").get<std::string>() + text_of(" %.3g MB", 1e-6 * bytes);
  }
  return text.empty() ? text : text + '\n';
}

std::string best_text(const Json& comparison) {
  std::string text = "best\n";
  for (const Json& best : comparison.at("best"))
    text +=
        text_of("  %5.3g %%: ", 100 * best.at("budget").get<double>()) + best.at("verdict").get<std::string>() + '\n';
  return text;
}

std::string smallest_text(const Json& comparison) {
  std::string text;
  for (const Json& smallest : comparison.at("smallest"))
    text += text_of("  %5.3g %%: ", 100 * smallest.at("loss").get<double>()) +
            smallest.at("verdict").get<std::string>() + '\n';
  return text.empty() ? text : "smallest that costs at most\n" + text;
}

std::string left_out_text(const Json& comparison) {
  const Json& verdict = comparison.at("left_out").at("verdict");
  return verdict.is_null() ? "" : verdict.get<std::string>() + '\n';
}

std::string retrieval_text(const Json& comparison) {
  const Json& full = comparison.at("full").at("retrieval");
  if (full.is_null()) return "";
  const auto answers = [](const std::string& label, double bytes, const Json& found) {
    return text_of("  %-34s%6.1f %%  %5.1f %%  %8.4f\n", label.c_str(), 100 * bytes,
                   100 * found.at("accuracy").get<double>(), found.at("log_likelihood").get<double>());
  };
  const auto questions = full.at("questions").get<std::size_t>();
  std::string text = full.at("task").get<std::string>() +
                     text_of(", %zu question%s", questions, questions == 1 ? "" : "s") +
                     ": bytes, accuracy, log-likelihood of the answer per token\n" + answers("full cache", 1, full);
  for (const Json& cell : comparison.at("cells"))
    if (!cell.at("retrieval").is_null())
      text += answers(cell.at("label"), cell.at("bytes_ratio"), cell.at("retrieval"));
  return text;
}

std::string gains_text(const Json& cells) {
  const auto of = [](const Json& ratio) {
    const Json& interval = ratio.at("interval");
    return text_of("%7.4f", ratio.at("mean").get<double>()) +
           (interval.is_null() ? std::string(18, ' ') : interval_text(interval, "%.4f"));
  };
  std::string text;
  for (const Json& cell : cells) {
    const Json& gain = cell.at("over_standard");
    if (gain.is_null()) continue;
    const std::string label = cell.at("label");
    text += text_of("  %-34s%6.1f %%  ", label.c_str(), 100 * cell.at("budget").get<double>()) + of(gain.at("ppl")) +
            "  " + of(gain.at("kl")) + text_of(" %3zu\n", gain.at("documents").get<std::size_t>());
  }
  return text.empty() ? text
                      : "calibrated, relative to the paper's settings: budget, perplexity, KL, documents\n" + text;
}

std::string speed_text(const Json& speeds) {
  if (speeds.is_null()) return "";
  std::string text;
  for (const Json& cell : speeds.at("cells")) {
    const std::string label = cell.at("label");
    if (text.empty())
      text = text_of("decoding at a budget: tokens/s, as a multiple of the full cache's %.1f\n",
                     cell.at("full_decode_tokens_per_second").get<double>());
    text += text_of("  %-34s%6.1f %%  %7.1f  × %.2f\n", label.c_str(), 100 * cell.at("budget").get<double>(),
                    cell.at("decode_tokens_per_second").get<double>(), cell.at("ratio").get<double>());
  }
  return text;
}

}  // namespace

Json comparison_json(std::span<const CompareCell> cells, std::span<const CellResult> results,
                     const ComparisonGoals& goals, const ModelConfig& model, std::size_t window) {
  const std::span<const double> budgets = goals.budgets;
  Json all = Json::array(), full{{"ppl", nullptr}, {"retrieval", nullptr}};
  std::vector<CellScores> scores;
  const CellResult* longest = nullptr;
  for (std::size_t n = 0; n < cells.size(); ++n) {
    all.push_back(cell_json(cells[n], results[n], budgets, model, window));
    scores.push_back(results[n].scores);
    if (!scores.back().kl.empty() && (longest == nullptr || scores.back().kl.size() > longest->scores.kl.size()))
      longest = &results[n];
  }
  if (longest != nullptr) full["ppl"] = finite_or_null(longest->sum.full->sum.perplexity());
  for (const std::size_t n : pareto_front(scores)) all[n]["front"] = true;
  add_gains(all, results);
  const ScoredCells scored{cells, results, all};
  Json best = best_choices(scored, budgets), smallest = smallest_choices(scored, goals.losses);
  add_losses(all, best, results);
  Json left = left_out(all);
  return {{"tokens", window},           {"full", std::move(full)}, {"budgets", budgets},
          {"cells", std::move(all)},    {"best", std::move(best)}, {"smallest", std::move(smallest)},
          {"left_out", std::move(left)}};
}

std::string comparison_text(const Json& comparison, const Json& speeds) {
  const Json& cells = comparison.at("cells");
  std::vector<std::size_t> order(cells.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const auto key = [&](const Json& cell) {
      const bool scored = cell.at("documents") != 0;
      return std::tuple(-cell.at("budget").get<double>(), -cell.at("documents").get<std::int64_t>(),
                        scored ? cell.at("kl").get<double>() : 0);
    };
    return key(cells[a]) < key(cells[b]);
  });
  std::string text = text_of("  %-34s%8s  %9s %8s  %7s  %-18s %3s  %s\n", "", "bytes", "ppl ratio", "KL", "top 1",
                             "95 % of the ratio", "doc", "KL × best's (95 %)");
  text += text_of("bytes of documents of %zu tokens\n", comparison.at("tokens").get<std::size_t>());
  double budget = 0;
  for (const std::size_t n : order) {
    if (cells[n].at("budget") != budget) {
      budget = cells[n].at("budget");
      text += text_of("budget %.3g %%\n", 100 * budget);
    }
    text += cell_line(cells[n]);
  }
  return text + shared_text(cells) + best_text(comparison) + smallest_text(comparison) + left_out_text(comparison) +
         gains_text(cells) + retrieval_text(comparison) + speed_text(speeds);
}

ParetoPlot pareto_plot(const Json& comparison) {
  const auto count = [&](const char* name) { return comparison.at(name).get<std::size_t>(); };
  const std::size_t all = count("documents"), scored = max_documents(comparison.at("cells"));
  const std::string name = comparison.at("model").at("name");
  ParetoPlot plot{name + " · " + (scored < all ? std::to_string(scored) + " of " : "") + std::to_string(all) +
                      (all == 1 ? " document of " : " documents of ") + std::to_string(count("tokens")) +
                      " tokens, the last " + std::to_string(count("tokens") - count("prefix") - 1) + " scored",
                  {}};
  for (const Json& cell : comparison.at("cells")) {
    if (cell.at("documents") != scored && !cell.at("front").get<bool>()) continue;  // of other documents
    const bool stored = cell.contains("store") && cell.at("store").is_string(), full = cell.at("method") == "full";
    plot.points.push_back({.label = cell.at("label"),
                           .method = full && stored ? "quantised alone" : cell.at("method").get<std::string>(),
                           .stored = stored,
                           .bytes = cell.at("bytes_ratio"),
                           .loss = cell.at("kl"),
                           .told = {},
                           .interval = {},
                           .front = cell.at("front").get<bool>()});
  }
  return plot;
}

}  // namespace kvs
