#include "compare/comparison.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "core/interrupt.h"

namespace kvs {
namespace {

using Cells = std::vector<std::size_t>;

/// Documents [first, last) of some cells.
struct Round {
  std::size_t first, last;
  Cells cells;
};

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
        progress_(progress),
        results_(make.size()),
        seconds_(make.size()) {}

  std::vector<CellResult> run() {
    Cells active(make_.size());
    std::iota(active.begin(), active.end(), 0);
    for (std::size_t done = 0; done < documents_.size() && !active.empty() && !out_of_time_;) {
      const std::size_t target =
          plan_.all ? documents_.size() : std::min(documents_.size(), std::max<std::size_t>(1, 2 * done));
      const Round round = recorded([&] { return affordable({done, target, active}); });
      if (round.last == round.first) break;
      score(round);
      done = round.last;
      active = round.cells;
      if (!plan_.all && done < documents_.size()) stop_beaten(active);
    }
    return std::move(results_);
  }

 private:
  /// The round that the records have next, or the one that `make` plans, which they then keep.
  Round recorded(const std::function<Round()>& make) {
    if (records_.replays()) return round_from(records_.next().at("round"));
    Round round = make();
    records_.keep({{"round", to_record(round)}});
    return round;
  }

  double left() const { return plan_.seconds ? *plan_.seconds - spent_ : 0; }
  /// Of a document with these cells, by what they took so far.
  double cost(const Cells& cells) const {
    double seconds = 0;
    for (const std::size_t n : cells) seconds += seconds_[n] / static_cast<double>(results_[n].scores.kl.size());
    return seconds;
  }
  std::vector<CellScores> scores() const {
    std::vector<CellScores> all;
    for (const CellResult& result : results_) all.push_back(result.scores);
    return all;
  }

  Round affordable(Round round) const {
    if (!plan_.seconds || round.first == 0) return round;
    const auto documents = static_cast<double>(round.last - round.first);
    const auto all = scores();
    const std::size_t front = pareto_front(all).size();
    while (round.cells.size() > front && documents * cost(round.cells) > left())
      round.cells = most_promising(all, round.cells, round.cells.size() - 1);
    const double each = cost(round.cells);
    if (documents * each > left()) round.last = round.first + static_cast<std::size_t>(std::max(0.0, left()) / each);
    return round;
  }

  void score(const Round& round) {
    const auto documents = static_cast<double>(round.last - round.first);
    const double before = spent_;
    for (std::size_t d = round.first; d < round.last; ++d) {
      std::optional<ReferencePass> reference;
      for (const std::size_t n : round.cells) {
        if (out_of_time_) return;
        score(n, d, reference);
        const double expected = round.first == 0 ? spent_ / static_cast<double>(d * round.cells.size() + n + 1) *
                                                       documents * static_cast<double>(round.cells.size())
                                                 : before + documents * cost(round.cells);
        if (progress_) progress_(spent_, std::max(spent_, expected));
      }
    }
  }

  void score(std::size_t n, std::size_t d, std::optional<ReferencePass>& reference) {
    if (records_.replays()) {
      const Json& record = records_.next();
      out_of_time_ = record.contains("out_of_time");
      if (!out_of_time_) add(n, evaluation_from(record.at("evaluation")), record.at("seconds").get<double>());
      return;
    }
    // The first document's cells have no measured cost yet.
    if (plan_.seconds && d == 0 && left() < 0) {
      out_of_time_ = true;
      return records_.keep({{"out_of_time", true}});
    }
    check_interrupt();
    const auto start = std::chrono::steady_clock::now();
    const EvaluationPlan plan{.make = make_[n], .last = documents_[d].size() - 1 - plan_.prefix};
    if (!reference) reference = reference_pass(decoder_, documents_[d], plan_.prefix, plan);
    const Evaluation evaluation = evaluate_document(decoder_, documents_[d], plan, &*reference);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    records_.keep({{"document", d}, {"cell", n}, {"seconds", seconds}, {"evaluation", kvs::to_record(evaluation)}});
    add(n, evaluation, seconds);
  }

  void add(std::size_t n, const Evaluation& document, double seconds) {
    CellResult& result = results_[n];
    result.sum += document;
    const Divergence& divergence = document.full->divergence;
    result.scores.kl.push_back(divergence.kl / static_cast<double>(divergence.tokens));
    result.scores.bytes = static_cast<double>(result.sum.cache.peak.stored);
    seconds_[n] += seconds;
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
  const std::function<void(double, double)>& progress_;
  std::vector<CellResult> results_;
  std::vector<double> seconds_;  // [cell] of all its documents
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
