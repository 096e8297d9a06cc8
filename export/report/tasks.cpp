// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "results/task_answers.h"

namespace kvs::inline report {
namespace {

Cell share_cell(double share) { return {shown_tenths(share), share}; }
double shared_bytes(const TaskAnswers& answers) { return static_cast<double>(answers.shared_bytes.value_or(0)); }

Markup task_maps(const TaskAnswers& answers, std::size_t file) {
  const draw::Chart chart = retrieval_chart("", answers.samples);
  if (chart.panels.empty()) return {};
  return figure(page_drawings(chart, "task-" + std::to_string(file)),
                "Task " + answers.task + " with " + cache_label(answers.method, answers.parameters) +
                    ": share of the answer that was found, and likelihood of the answer, by depth in the text and "
                    "length.",
                answers.command);
}

Cell difference_cell(const std::optional<TaskSummary::Reference>& reference) {
  if (!reference) return Cell::missing();
  const auto& [value, range] = reference->difference;
  return {shown(value) + (range ? " (" + shown(range->first) + " to " + shown(range->second) + ")" : ""), value};
}

void add_task_row(Table& table, const TaskAnswers& answers) {
  const auto& [questions, prompt_tokens, means, reference] = answers.summary;
  table.row({answers.task,
             cache_label(answers.method, answers.parameters),
             bytes_cell(means.bytes_ratio, shared_bytes(answers)),
             {shown_count(questions), static_cast<double>(questions)},
             share_cell(means.accuracy),
             means.text ? share_cell(means.text->partial) : Cell::missing(),
             {shown(means.log_likelihood), means.log_likelihood},
             difference_cell(reference),
             reference ? share_cell(reference->full.accuracy) : Cell::missing()});
}

std::string task_finding(const TaskAnswers& answers) {
  if (answers.fails_with_full_cache.value_or(false))
    return "The model misses most questions of " + answers.task +
           " with the full cache: only the log-likelihood of the answers tells caches apart.";
  const double shared = shared_bytes(answers);
  const TaskSummary& summary = answers.summary;
  const std::string with = "With " + spoken(cache_label(answers.method, answers.parameters)) + " " +
                           shown_percent(summary.means.accuracy) + " of the questions of " + answers.task +
                           " are answered, on " + shown_percent(summary.means.bytes_ratio) + " of the bytes" +
                           (shared > 0 ? " and " + shown(1e-6 * shared) + "\u00A0MB that all sequences share" : "");
  if (!summary.reference) return with + ".";
  return with + "; with the full cache " + shown_percent(summary.reference->full.accuracy) + ".";
}

}  // namespace

Section tasks_section(const ReportInputs& inputs) {
  Section section{"tasks", "Retrieval", {}, {}};
  Table table("Answers to tasks",
              {{"Task", false},
               {"Cache", false},
               {"Bytes", true, "most that were held, of the full cache"},
               {"Questions"},
               {"Right"},
               {"Partial", true, "longest piece of the answer that was said"},
               {"Log-likelihood", true, "of the right answer, nats a token"},
               {"Difference", true, "of the log-likelihood from the full cache's, with its 95 % interval"},
               {"Full: right"}});
  Markup drawings;
  std::size_t file = 0;
  for (const TaskAnswers& answers : inputs.of<TaskAnswers>()) {
    add_task_row(table, answers);
    drawings += task_maps(answers, file++);
    section.findings.push_back(task_finding(answers));
  }
  if (!table.empty()) section.body = table.markup() + drawings;
  return section;
}

}  // namespace kvs::inline report
