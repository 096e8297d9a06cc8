#include <map>
#include <set>

#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "results/retrieval_chart.h"

namespace kvs {
namespace {

constexpr std::uint64_t kMaxTokens = 1 << 24;

/// That all sequences share beside the bytes of each.
double shared_bytes_of(const JsonCursor& root) { return root.has("shared_bytes") ? root.at("shared_bytes").real() : 0; }

std::string label_of(const JsonCursor& root) {
  return cache_label(root.at("method").string(),
                     root.has("parameters") ? std::optional(root.at("parameters").value()) : std::nullopt);
}

/// Mean partial scores by where the answer was hidden.
struct ScorePlace {
  double depth;
  std::size_t length;
  auto operator<=>(const ScorePlace&) const = default;
};
struct ScoreMean {
  double sum = 0;
  std::size_t count = 0;
};
using Scores = std::map<ScorePlace, ScoreMean>;

/// @param cache  "answer" or "full".  Empty if the task has no depths.
Scores scores_of(const JsonCursor& samples, const char* cache) {
  Scores scores;
  for (std::size_t n = 0; n < samples.array_size(); ++n) {
    const JsonCursor sample = samples.at(n);
    if (!sample.has("depth") || !sample.has("length") || !sample.has(cache)) return {};
    ScoreMean& mean = scores[{sample.at("depth").real(), sample.at("length").unsigned_integer(kMaxTokens)}];
    mean.sum += sample.at(cache).at("partial").real();
    ++mean.count;
  }
  return scores;
}

RetrievalMap::Values score_values(const Scores& scores, const RetrievalMap& places, const std::string& key,
                                  const std::string& title) {
  RetrievalMap::Values map{key, title, true, {}, {}};
  for (const double depth : places.depths) {
    map.values.emplace_back();
    map.told.emplace_back();
    for (const std::size_t length : places.lengths) {
      const auto cell = scores.find({depth, length});
      const bool there = cell != scores.end();
      const double score = there ? cell->second.sum / static_cast<double>(cell->second.count) : draw::kNoValue;
      map.values.back().push_back(score);
      map.told.back().push_back(
          there ? shown_percent(score) + " of the answer, " + counted(cell->second.count, "question") : "not asked");
    }
  }
  return map;
}

/// Lengths and depths of all questions.
RetrievalMap places_of(const Scores& scores) {
  std::set<double> depths;
  std::set<std::size_t> lengths;
  for (const auto& [place, mean] : scores) {
    depths.insert(place.depth);
    lengths.insert(place.length);
  }
  return {"", {lengths.begin(), lengths.end()}, {depths.begin(), depths.end()}, {}};
}

Markup task_maps(const Output& output, std::size_t file) {
  const JsonCursor samples = output.root().at("samples");
  const Scores scores = scores_of(samples, "answer"), full = scores_of(samples, "full");
  RetrievalMap map = places_of(scores.empty() ? full : scores);
  if (!scores.empty()) map.maps.push_back(score_values(scores, map, "", label_of(output.root())));
  if (!full.empty()) map.maps.push_back(score_values(full, map, "full", "Full cache"));
  if (map.maps.empty()) return {};
  return figure(page_drawings(retrieval_chart(map), "task-" + std::to_string(file)),
                "Task " + output.root().at("task").string() +
                    ": share of the answer that was found, by depth in the text and length.",
                output.root().at("command").string());
}

void add_task_row(Table& table, const JsonCursor& root) {
  const auto share = [](const JsonCursor& of, const char* name) {
    return of.has(name) ? Cell(shown_tenths(of.at(name).real()), of.at(name).real()) : Cell::missing();
  };
  const auto real = [](const JsonCursor& of, const char* name) {
    return Cell(shown(of.at(name).real()), of.at(name).real());
  };
  Cell difference = Cell::missing();
  if (root.has("difference")) {
    const JsonCursor of = root.at("difference");
    const double value = of.at("log_likelihood").real();
    const auto range = interval_of(of);
    difference = {shown(value) + (range ? " (" + shown(range->first) + " to " + shown(range->second) + ")" : ""),
                  value};
  }
  const std::uint64_t questions = root.at("questions").unsigned_integer();
  table.row(
      {root.at("task").string(),
       label_of(root),
       root.has("bytes_ratio") ? bytes_cell(root.at("bytes_ratio").real(), shared_bytes_of(root)) : Cell::missing(),
       {shown_count(questions), static_cast<double>(questions)},
       share(root, "accuracy"),
       share(root, "partial"),
       real(root, "log_likelihood"),
       difference,
       root.has("full") ? share(root.at("full"), "accuracy") : Cell::missing()});
}

std::string task_finding(const JsonCursor& root) {
  const std::string task = root.at("task").string();
  if (root.has("fails_with_full_cache") && root.at("fails_with_full_cache").boolean())
    return "The model misses most questions of " + task +
           " with the full cache: only the log-likelihood of the answers tells caches apart.";
  const double shared = shared_bytes_of(root);
  const auto right = [](const JsonCursor& of) { return shown_percent(of.at("accuracy").real()); };
  const std::string with = "With " + spoken(label_of(root)) + " " + right(root) + " of the questions of " + task +
                           " are answered, on " + shown_percent(root.at("bytes_ratio").real()) + " of the bytes" +
                           (shared > 0 ? " and " + shown(1e-6 * shared) + "\u00A0MB that all sequences share" : "");
  return root.has("full") ? with + "; with the full cache " + right(root.at("full")) + "." : with + ".";
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
  for (const Output* output : inputs.of(OutputKind::kTask)) {
    add_task_row(table, output->root());
    drawings += task_maps(*output, file++);
    section.findings.push_back(task_finding(output->root()));
  }
  if (!table.empty()) section.body = table.markup() + drawings;
  return section;
}

}  // namespace kvs
