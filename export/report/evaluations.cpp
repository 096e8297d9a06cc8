// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <tuple>

#include "draw/svg.h"
#include "eval/paired_difference.h"
#include "export/report/markup.h"
#include "export/report/pareto.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "results/evaluation.h"

namespace kvs::inline report {
namespace {

struct Evaluated {
  const Output* output;
  EvaluationResult result;

  const CacheQuality& quality() const { return result.quality; }
  std::string label() const { return cache_label(result.method, result.parameters); }
  std::string settings() const { return result.parameters ? settings_text(*result.parameters) : ""; }
};
/// Evaluations of the same tokens, the largest cache first. Only evaluations of one group can be compared.
using Group = std::vector<Evaluated>;

std::vector<Group> groups_of(const std::vector<const Output*>& outputs) {
  std::vector<Group> groups;
  const auto tokens = [](const EvaluationResult& one) {
    return std::tie(one.text_sha256, one.window, one.documents, one.quality.tokens_scored, one.bos);
  };
  for (const Output* output : outputs) {
    Evaluated one{output, from_json<EvaluationResult>(output->root())};
    const auto group = std::ranges::find_if(
        groups, [&](const Group& other) { return tokens(other.front().result) == tokens(one.result); });
    (group == groups.end() ? groups.emplace_back() : *group).push_back(std::move(one));
  }
  for (Group& group : groups)
    std::ranges::stable_sort(group, std::greater{}, [](const Evaluated& one) { return one.quality().bytes_ratio; });
  return groups;
}

/// Returns the relative change of perplexity. The ratio itself may not fit a double.
double change_of(const PerplexityRatio& ratio) { return ratio.ppl ? *ratio.ppl - 1 : growth(ratio.nll_difference); }

Cell with_error(double value, double error, int digits = 3) {
  return {shown(value, digits) + (error > 0 ? " \u00B1\u00A0" + shown(error, 2) : ""), value};
}

/// Returns the cell of a perplexity: "14.21 ± 0.35".
Cell perplexity_cell(const CacheQuality& quality) {
  if (!quality.ppl) return {perplexity_words(quality.nll_mean), quality.nll_mean};
  return with_error(*quality.ppl, *quality.ppl * quality.nll_error, 4);
}

/// Returns the points of evaluations that are compared with the full cache.
std::vector<TradePoint> evaluated_points(const Group& group) {
  std::vector<TradePoint> points;
  for (const Evaluated& one : group) {
    const std::string label = one.label();
    const auto& loss = one.quality().loss;
    if (!loss && label != "full") continue;
    TradePoint point{.label = label, .method = one.result.method, .tooltip = {}, .interval = {}};
    point.stored = point.label != point.method;
    if (point.stored && point.method == "full") point.method = kQuantisedAlone;
    point.bytes = one.quality().bytes_ratio;
    if (loss) {
      point.loss = change_of(loss->ratio);
      point.interval = kvs::as_change(loss->ratio.interval);
    }
    point.tooltip = perplexity_change(point.loss, point.interval);
    if (one.result.parameters) point.tooltip += "; " + one.settings();
    points.push_back(std::move(point));
  }
  mark_pareto_front(points);
  return points;
}

/// Returns the cell of the share of equal first choices: "86.9 % ± 3.5".
Cell top1_cell(const CacheLoss& loss) {
  if (!loss.tail) return {shown_tenths(loss.top1), loss.top1};
  const auto [low, high] = loss.tail->top1_interval;
  return {shown_tenths(loss.top1) + " \u00B1\u00A0" + shown(50 * (high - low), 2), loss.top1};
}

Cell engines_cell(const std::vector<EngineUse>& engines) {
  std::string words;
  for (const EngineUse& use : engines) words += (words.empty() ? "" : ", ") + use.engine;
  return words.empty() ? Cell::missing() : Cell(words);
}

/// Adds the cells of the divergence's quantiles and of its largest value.
void add_tail(std::vector<Cell>& cells, const std::optional<DivergenceTail>& tail) {
  if (!tail) return cells.resize(cells.size() + 3, Cell::missing());
  for (const double nats : {tail->p99, tail->p999, tail->largest.kl}) cells.emplace_back(shown(nats), nats);
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
               {"99\u00A0%", true, "of the tokens have a smaller divergence"},
               {"99.9\u00A0%", true, "of the tokens have a smaller divergence"},
               {"Largest", true, "divergence of a token"},
               {"Top-1", true, "tokens with the full cache's first choice, \u00B1 half of the 95\u00A0% interval"},
               {"Runs in", false, "engines that execute it"}});
  for (const Evaluated& one : group) {
    const auto& loss = one.quality().loss;
    std::vector<Cell> cells{
        one.label(), one.settings(),
        bytes_cell(one.quality().bytes_ratio, static_cast<double>(one.result.shared_bytes.value_or(0))),
        perplexity_cell(one.quality())};
    if (loss) {
      const double change = change_of(loss->ratio);
      cells.emplace_back(shown_change(change), change);
      cells.push_back(interval_cell(kvs::as_change(loss->ratio.interval)));
      cells.push_back(with_error(loss->kl, loss->kl_error));
      add_tail(cells, loss->tail);
      cells.push_back(top1_cell(*loss));
    } else {
      cells.resize(cells.size() + 7, Cell::missing());
    }
    cells.push_back(engines_cell(one.result.engines));
    table.row(cells);
  }
  return table.markup();
}

/// Returns a figure of the divergence by its size and by position for each evaluation that has them.
Markup divergence_figures(const Group& group, const std::string& id) {
  Markup figures;
  for (std::size_t n = 0; n < group.size(); ++n) {
    const auto& loss = group[n].quality().loss;
    if (!loss || !loss->curves) continue;
    const std::string settings = group[n].settings();
    figures += figure(page_drawings(divergence_chart("", *loss->curves), id + '-' + std::to_string(n)),
                      text("KL divergence of " + group[n].label() + (settings.empty() ? "" : " (" + settings + ")") +
                           " from the full cache: tokens by divergence, and the mean by position."),
                      "");
  }
  return figures.empty() ? figures : folded("Divergence by size and by position", figures);
}

Markup command_list(const Group& group) {
  Markup list;
  for (const Evaluated& one : group)
    list += element("dt", one.output->name) + element("dd", element("code", one.result.command));
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
    const EvaluationResult& first = group.front().result;
    const std::string extent = counted(first.documents, "document") + " of " + shown_count(first.window) + " tokens, " +
                               shown_count(first.quality.tokens_scored) + " scored";
    const std::vector<TradePoint> points = evaluated_points(group);
    if (points.size() > 1)
      section.body +=
          figure(pareto_figure("evaluations-" + std::to_string(number), "Bytes against perplexity",
                               "Each cache by the bytes it holds and the change of perplexity, on " + extent + ".",
                               perplexity_scale(), points),
                 text("Bytes against the change of perplexity from the full cache, on " + extent +
                      ". The line joins what nothing smaller beats."),
                 "", true);
    section.body += evaluations_table(group, "Evaluated on " + extent) +
                    divergence_figures(group, "divergence-" + std::to_string(number)) + command_list(group);
    if (std::string words = evaluation_finding(points, extent); !words.empty())
      section.findings.push_back(std::move(words));
    ++number;
  }
  return section;
}

}  // namespace kvs::inline report
