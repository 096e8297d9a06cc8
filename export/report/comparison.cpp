#include "export/report/comparison.h"

#include <algorithm>
#include <functional>

#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/settings.h"

namespace kvs {
namespace {

constexpr std::uint64_t kMaxCount = 1ULL << 40;

std::optional<double> optional_real(const JsonCursor& of, const char* name) {
  return of.has(name) ? std::optional(of.at(name).real()) : std::nullopt;
}

/// A ratio as a change.
double change(const JsonCursor& ratio) { return ratio.at("mean").positive() - 1; }

bool is_over_parts(const JsonCursor& ratio) { return ratio.has("over") && ratio.at("over").string() == "parts"; }

ComparisonChange read_change(const JsonCursor& of) {
  const JsonCursor ppl = of.at("ppl"), kl = of.at("kl");
  return {.ppl = change(ppl),
          .kl = change(kl),
          .ppl_interval = ratio_interval(ppl),
          .kl_interval = ratio_interval(kl),
          .over_parts = is_over_parts(ppl),
          .documents = of.at("documents").unsigned_integer(kMaxCount)};
}

/// A share of the full cache's bytes, or 0 of a cell that was not scored.
double read_budget(const JsonCursor& budget) {
  const double share = budget.real();
  if (share < 0) budget.fail("a number of at least 0");
  return share;
}

ComparisonCell read_cell(const JsonCursor& cell) {
  ComparisonCell result;
  result.label = cell.at("label").string();
  result.method = cell.at("method").string();
  result.settings = settings_text(cell.at("settings").value());
  if (cell.has("config")) result.config = cell.at("config").string();
  if (cell.has("error")) result.error = cell.at("error").string();
  if (cell.has("store")) {
    result.store = cell.at("store").string();
    const bool named = result.settings.find("store") != std::string::npos;
    if (!named && result.store != "none")
      result.settings += (result.settings.empty() ? "" : " \u00B7 ") + std::string("store\u00A0") + result.store;
  }
  result.calibrated = cell.at("calibrated").boolean();
  result.stopped = cell.at("stopped").boolean();
  result.front = cell.at("front").boolean();
  result.budget = read_budget(cell.at("budget"));
  result.documents = cell.at("documents").unsigned_integer(kMaxCount);
  result.bytes = optional_real(cell, "bytes_ratio");
  if (cell.has("shared_bytes")) result.shared_bytes = cell.at("shared_bytes").real();
  if (result.bytes && *result.bytes <= 0) cell.at("bytes_ratio").fail("a number above 0");
  result.ppl = optional_real(cell, "ppl");
  result.kl = optional_real(cell, "kl");
  result.top1 = optional_real(cell, "top1");
  if (cell.has("ratio")) {
    const JsonCursor ratio = cell.at("ratio");
    if (!ratio.has("ppl")) return result;  // beyond a double: nothing to compare with
    result.loss = ratio.at("ppl").positive() - 1;
    result.interval = ratio_interval(ratio);
    result.over_parts = is_over_parts(ratio);
    if (result.interval && (*result.loss < result.interval->first || *result.loss > result.interval->second))
      ratio.at("interval").fail("an interval around the ratio");
  }
  if (cell.has("over_standard")) result.gain = read_change(cell.at("over_standard"));
  if (cell.has("over_best")) result.loss_to_best = read_change(cell.at("over_best"));
  if (cell.has("retrieval")) {
    result.accuracy = cell.at("retrieval").at("accuracy").real();
    result.log_likelihood = cell.at("retrieval").at("log_likelihood").real();
  }
  return result;
}

/// The verdicts of the choices in the order of the file, then that of what was left out.
std::vector<std::string> read_verdicts(const JsonCursor& root) {
  std::vector<std::string> verdicts;
  const auto add = [&](const char* choices, const std::function<std::string(const JsonCursor&)>& lead) {
    if (!root.has(choices)) return;
    const JsonCursor all = root.at(choices);
    for (std::size_t n = 0; n < all.array_size(); ++n)
      if (all.at(n).has("verdict")) verdicts.push_back(lead(all.at(n)) + ": " + all.at(n).at("verdict").string());
  };
  add("best", [](const JsonCursor& best) {
    return "Best at " + shown_percent(best.at("budget").positive()) + " of the bytes";
  });
  add("smallest", [](const JsonCursor& smallest) {
    return "Smallest that costs at most " + shown_percent(smallest.at("loss").positive()) + " of perplexity";
  });
  if (root.has("left_out") && root.at("left_out").has("verdict"))
    verdicts.push_back(capitalised(root.at("left_out").at("verdict").string()) + ".");
  return verdicts;
}

}  // namespace

std::string documents_of(const Comparison& comparison, std::size_t scored) {
  return (scored < comparison.documents ? shown_count(scored) + " of " : "") +
         counted(comparison.documents, "document");
}

std::vector<std::vector<const ComparisonCell*>> alike(const Comparison& comparison) {
  std::map<std::size_t, std::vector<const ComparisonCell*>, std::greater<>> groups;
  for (const ComparisonCell& cell : comparison.cells) groups[cell.documents].push_back(&cell);
  std::vector<std::vector<const ComparisonCell*>> all;
  all.reserve(groups.size());
  for (auto& [documents, cells] : groups) all.push_back(std::move(cells));
  return all;
}

std::size_t max_scored(const Comparison& comparison) {
  std::size_t most = 0;
  for (const ComparisonCell& cell : comparison.cells) most = std::max(most, cell.documents);
  return most;
}

Comparison read_comparison(const Output& output) {
  const JsonCursor root = output.root(), cells = root.at("cells"), best = root.at("best");
  Comparison comparison{.command = root.at("command").string(),
                        .full_ppl = root.at("full").has("ppl") ? root.at("full").at("ppl").positive() : 0,
                        .tokens = root.at("tokens").unsigned_integer(kMaxCount),
                        .documents = root.at("documents").unsigned_integer(kMaxCount),
                        .budgets = reals(root.at("budgets")),
                        .cells = {},
                        .best = {},
                        .smallest = {}};
  std::ranges::sort(comparison.budgets, std::greater{});
  for (std::size_t n = 0; n < cells.array_size(); ++n) comparison.cells.push_back(read_cell(cells.at(n)));
  const auto cell_of = [&](const JsonCursor& one) -> std::optional<std::size_t> {
    if (!one.has("cell")) return std::nullopt;
    const JsonCursor cell = one.at("cell");
    const std::uint64_t index = cell.unsigned_integer(kMaxCount);
    if (index >= comparison.cells.size()) cell.fail("the index of a cell");
    return index;
  };
  for (std::size_t n = 0; n < best.array_size(); ++n)
    if (const auto cell = cell_of(best.at(n))) comparison.best[best.at(n).at("budget").positive()] = *cell;
  if (root.has("smallest")) {
    const JsonCursor smallest = root.at("smallest");
    for (std::size_t n = 0; n < smallest.array_size(); ++n)
      comparison.smallest[smallest.at(n).at("loss").positive()] = cell_of(smallest.at(n));
  }
  comparison.verdicts = read_verdicts(root);
  return comparison;
}

void add_speeds(const Output& speeds, Comparison& comparison) {
  const JsonCursor cells = speeds.root().at("cells");
  for (std::size_t n = 0; n < cells.array_size(); ++n) {
    const JsonCursor cell = cells.at(n);
    for (ComparisonCell& of : comparison.cells)
      if (of.label == cell.at("label").string() && of.budget == cell.at("budget").real())
        of.speed = optional_real(cell, "decode_tokens_per_second");
  }
}

}  // namespace kvs
