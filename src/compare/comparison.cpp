#include "compare/comparison.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "core/interrupt.h"
#include "ranks/watch.h"

namespace kvs {
namespace {

using Cells = std::vector<std::size_t>;

Json to_record(const Round& round) { return {{"first", round.first}, {"last", round.last}, {"cells", round.cells}}; }
Round round_from(const Json& record) {
  return {record.at("first").get<std::size_t>(), record.at("last").get<std::size_t>(), record.at("cells").get<Cells>()};
}

class Comparison {
 public:
  Comparison(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
             std::span<const std::function<Cache()>> make, const ComparisonPlan& plan, RunRecords& records,
             const std::function<void(double, double)>& progress)
      : decoder_(decoder),
        documents_(documents),
        make_(make),
        plan_(plan),
        records_(records),
        ranks_(records.ranks()),
        progress_(progress),
        results_(make.size()) {}

  std::vector<CellResult> run() {
    Cells active(make_.size());
    std::iota(active.begin(), active.end(), 0);
    std::size_t done = 0;
    while (const std::optional<Round> round = next_round(done, active)) {
      score(*round);
      done = round->last;
      active = round->cells;
      if (ranks_.leads() && !plan_.all && done < documents_.size()) stop_beaten(active);
    }
    return std::move(results_);
  }

 private:
  /// The round that rank 0 has in its records or plans, on every rank; nothing when all is done or the time is over.
  std::optional<Round> next_round(std::size_t done, const Cells& active) {
    Json next;
    if (ranks_.leads() && done < documents_.size() && !active.empty() && !out_of_time_) {
      if (records_.replays()) {
        next = records_.next().at("round");
      } else {
        const std::size_t target =
            plan_.all ? documents_.size() : std::min(documents_.size(), std::max<std::size_t>(1, 2 * done));
        next = to_record(within_time({done, target, active}));
        records_.keep({{"round", next}});
      }
    }
    next = ranks_.tell(std::move(next));
    if (next.is_null()) return std::nullopt;
    const Round round = round_from(next);
    return round.last == round.first ? std::nullopt : std::optional(round);
  }

  double left() const { return plan_.seconds ? *plan_.seconds - spent_ / static_cast<double>(ranks_.size()) : 0; }
  std::vector<CellScores> scores() const {
    std::vector<CellScores> all;
    for (const CellResult& result : results_) all.push_back(result.scores);
    return all;
  }
  /// The first document's cells have no measured cost yet.
  Round within_time(const Round& round) const {
    return plan_.seconds && round.first > 0 ? affordable(round, scores(), documents_.size(), left()) : round;
  }

  /// The passes of a round, document by document: those that the records have, then the others.
  void score(const Round& round) {
    const std::size_t cells = round.cells.size(), passes = (round.last - round.first) * cells;
    const double before = spent_;
    std::size_t scored = 0;
    const auto take = [&](const Json& record) {
      if (out_of_time_) return;
      out_of_time_ = record.contains("out_of_time");
      if (out_of_time_) return;
      add(record.at("cell").get<std::size_t>(), evaluation_from(record.at("evaluation")),
          record.at("seconds").get<double>());
      const double expected = before + (spent_ - before) / static_cast<double>(++scored) * static_cast<double>(passes);
      if (progress_) progress_(spent_, std::max(spent_, expected));
    };
    while (records_.replays() && scored < passes && !out_of_time_) take(records_.next());
    const Json rest = ranks_.tell({{"first", out_of_time_ ? passes : scored}, {"seconds", left()}});
    const double seconds_left = rest.at("seconds").get<double>();
    double own_seconds = 0;
    const auto measure = [&](std::size_t pass) -> UnitResult {
      if (plan_.seconds && round.first == 0 && own_seconds > seconds_left) return {Json{{"out_of_time", true}}};
      Json record = scored_pass(round.cells[pass % cells], round.first + pass / cells);
      own_seconds += record.at("seconds").get<double>();
      return {std::move(record)};
    };
    ranks_.share({.first = rest.at("first").get<std::size_t>(), .last = passes, .per_document = cells}, measure,
                 [&](std::size_t, const UnitResult& result) {
                   if (!out_of_time_) records_.keep(result.record);
                   take(result.record);
                 });
    reference_.reset();
  }

  Json scored_pass(std::size_t n, std::size_t d) {
    check_interrupt();
    note_document(d);
    const auto start = std::chrono::steady_clock::now();
    const EvaluationPlan plan{.make = make_[n], .last = documents_[d].size() - 1 - plan_.prefix};
    if (!reference_ || referred_ != d) reference_ = reference_pass(decoder_, documents_[d], plan_.prefix, plan);
    referred_ = d;
    const Evaluation evaluation = evaluate_document(decoder_, documents_[d], plan, &*reference_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {{"document", d}, {"cell", n}, {"seconds", seconds}, {"evaluation", kvs::to_record(evaluation)}};
  }

  void add(std::size_t n, const Evaluation& document, double seconds) {
    CellResult& result = results_[n];
    result.sum += document;
    const Divergence& divergence = document.full->divergence;
    result.scores.kl.push_back(divergence.kl / static_cast<double>(divergence.tokens));
    result.scores.bytes = static_cast<double>(result.sum.cache.peak.stored);
    result.scores.seconds += seconds;
    spent_ += seconds;
  }

  void stop_beaten(Cells& active) {
    const std::vector<bool> stops = beaten(scores(), active);
    Cells still;
    for (std::size_t i = 0; i < active.size(); ++i) {
      results_[active[i]].stopped = stops[i];
      if (!stops[i]) still.push_back(active[i]);
    }
    active = std::move(still);
  }

  Decoder& decoder_;
  std::span<const std::vector<std::int32_t>> documents_;
  std::span<const std::function<Cache()>> make_;
  const ComparisonPlan& plan_;
  RunRecords& records_;
  Ranks& ranks_;
  const std::function<void(double, double)>& progress_;
  std::vector<CellResult> results_;
  std::optional<ReferencePass> reference_;  // of document referred_
  std::size_t referred_ = 0;
  double spent_ = 0;
  bool out_of_time_ = false;
};

}  // namespace

std::vector<CellResult> score_cells(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                    std::span<const std::function<Cache()>> make, const ComparisonPlan& plan,
                                    RunRecords& records, const std::function<void(double, double)>& progress) {
  return Comparison(decoder, documents, make, plan, records, progress).run();
}

}  // namespace kvs
