#include <algorithm>
#include <functional>
#include <map>

#include "eval/paired_difference.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "export/report/tradeoff.h"

namespace kvs {
namespace {

constexpr std::uint64_t kMaxScored = 1ULL << 40;

/// Evaluations of the same tokens, which alone can be compared; the largest cache first.
using Group = std::vector<const Output*>;

std::vector<Group> groups_of(const std::vector<const Output*>& outputs) {
  std::map<std::string, std::size_t> places;
  std::vector<Group> groups;
  for (const Output* output : outputs) {
    const JsonCursor root = output->root();
    const std::string key = root.at("text_sha256").value().dump() + root.at("window").value().dump() +
                            root.at("documents").value().dump() + root.at("tokens_scored").value().dump() +
                            (root.has("bos") ? root.at("bos").value().dump() : "");
    const auto [place, is_new] = places.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(output);
  }
  for (Group& group : groups)
    std::ranges::stable_sort(group, std::greater{},
                             [](const Output* output) { return output->root().at("bytes_ratio").real(); });
  return groups;
}

bool is_full(const JsonCursor& root) { return cache_label(root) == "full"; }

/// Of perplexity, from a ratio that may be beyond a double.
double change_of(const JsonCursor& ratio) {
  return ratio.has("ppl") ? ratio.at("ppl").positive() - 1 : growth(ratio.at("nll_difference").real());
}

Cell held_bytes(const JsonCursor& root) {
  return bytes_cell(root.at("bytes_ratio").real(), root.has("shared_bytes") ? root.at("shared_bytes").real() : 0);
}

std::string error_text(double error) { return error > 0 ? " \u00B1\u00A0" + shown(error, 2) : ""; }

/// "14.21 ± 0.35", with the standard error where the output has it.
Cell perplexity_cell(const JsonCursor& root) {
  if (!root.has("ppl")) return {perplexity_words(root, "ppl", "nll_mean"), root.at("nll_mean").real()};
  const double ppl = root.at("ppl").positive();
  return {shown(ppl, 4) + (root.has("nll_error") ? error_text(ppl * root.at("nll_error").real()) : ""), ppl};
}

Cell with_error(const JsonCursor& root, const char* name, const char* error) {
  if (!root.has(name)) return Cell::missing();
  const double value = root.at(name).real();
  return {shown(value) + (root.has(error) ? error_text(root.at(error).real()) : ""), value};
}

/// Against the full cache, where there is such a comparison.
std::vector<TradePoint> evaluated_points(const Group& group) {
  std::vector<TradePoint> points;
  for (const Output* output : group) {
    const JsonCursor root = output->root();
    if (!root.has("ratio") && !is_full(root)) continue;
    TradePoint point{.label = cache_label(root), .method = root.at("method").string(), .told = {}, .interval = {}};
    point.stored = point.label != point.method;
    if (point.stored && point.method == "full") point.method = "quantised alone";
    point.bytes = root.at("bytes_ratio").positive();
    if (root.has("ratio")) {
      const JsonCursor ratio = root.at("ratio");
      point.loss = change_of(ratio);
      point.interval = ratio_interval(ratio);
    }
    point.told = perplexity_change(point.loss, point.interval);
    if (root.has("parameters")) point.told += "; " + settings_text(root.at("parameters").value());
    points.push_back(std::move(point));
  }
  mark_front(points);
  return points;
}

Markup evaluations_table(const Group& group, const std::string& caption) {
  Table table(caption,
              {{"Cache", false},
               {"Settings", false},
               {"Bytes", true, "most that were held, of the full cache, and what all sequences share"},
               {"Perplexity", true, "\u00B1 its standard error, over documents; of one document over its tokens"},
               {"Change", true, "of perplexity from the full cache's"},
               {"95\u00A0%", true, "interval of the change, over documents"},
               {"KL", true, "divergence from the full cache's predictions, nats a token, \u00B1 its standard error"},
               {"Top-1", true, "tokens with the full cache's first choice"}});
  for (const Output* output : group) {
    const JsonCursor root = output->root();
    const auto cell = [&](const char* name, auto shown_as) {
      return root.has(name) ? Cell(shown_as(root.at(name).real()), root.at(name).real()) : Cell::missing();
    };
    const auto percent = [](double share) { return shown_tenths(share); };
    const auto change = [](double by) { return Cell(shown_change(by), by); };
    std::vector<Cell> cells{cache_label(root),
                            root.has("parameters") ? settings_text(root.at("parameters").value()) : "",
                            held_bytes(root), perplexity_cell(root)};
    const bool has_ratio = root.has("ratio");
    cells.push_back(has_ratio ? change(change_of(root.at("ratio"))) : Cell::missing());
    cells.push_back(has_ratio ? interval_cell(ratio_interval(root.at("ratio"))) : Cell::missing());
    cells.push_back(with_error(root, "kl", "kl_error"));
    cells.push_back(cell("top1", percent));
    table.row(cells);
  }
  return table.markup();
}

Markup command_list(const Group& group) {
  Markup list;
  for (const Output* output : group)
    list += element("dt", output->name) + element("dd", element("code", output->root().at("command").string()));
  return folded("Commands", element("dl", {{"class", "commands"}}, list));
}

std::string evaluation_finding(const std::vector<TradePoint>& points, const std::string& extent) {
  std::string words;
  for (const TradePoint& point : points) {
    if (point.label == "full") continue;
    words += (words.empty() ? "" : "; ") + spoken(point.label) + ' ' + shown_change(point.loss) + " at " +
             shown_percent(point.bytes) + zero_note(point.interval);
  }
  return words.empty() ? words : "Change of perplexity and bytes held, on " + extent + ": " + words + ".";
}

}  // namespace

Section evaluations_section(const ReportInputs& inputs) {
  Section section{"evaluations", "Caches at work", {}, {}};
  std::size_t number = 0;
  for (const Group& group : groups_of(inputs.of(OutputKind::kEvaluation))) {
    const JsonCursor root = group.front()->root();
    const std::string extent = counted(root.at("documents").unsigned_integer(kMaxScored), "document") + " of " +
                               shown_count(root.at("window").unsigned_integer(kMaxScored)) + " tokens, " +
                               shown_count(root.at("tokens_scored").unsigned_integer(kMaxScored)) + " scored";
    const std::vector<TradePoint> points = evaluated_points(group);
    if (points.size() > 1)
      section.body +=
          figure(tradeoff("evaluations-" + std::to_string(number), "Bytes against perplexity",
                          "Each cache by the bytes it holds and the change of perplexity, on " + extent + ".",
                          perplexity_scale(), points),
                 text("Bytes against the change of perplexity from the full cache, on " + extent +
                      ". The line joins what nothing smaller beats."),
                 "", true);
    section.body += evaluations_table(group, "Evaluated on " + extent) + command_list(group);
    if (std::string words = evaluation_finding(points, extent); !words.empty())
      section.findings.push_back(std::move(words));
    ++number;
  }
  return section;
}

}  // namespace kvs
