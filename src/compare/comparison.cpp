#include "compare/comparison.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "core/interrupt.h"

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
        progress_(progress),
        results_(make.size()) {}

  std::vector<CellResult> run() {
    Cells active(make_.size());
    std::iota(active.begin(), active.end(), 0);
    for (std::size_t done = 0; done < documents_.size() && !active.empty() && !out_of_time_;) {
      const std::size_t target =
          plan_.all ? documents_.size() : std::min(documents_.size(), std::max<std::size_t>(1, 2 * done));
      const Round round = recorded([&] { return within_time({done, target, active}); });
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
  std::vector<CellScores> scores() const {
    std::vector<CellScores> all;
    for (const CellResult& result : results_) all.push_back(result.scores);
    return all;
  }
  /// The first document's cells have no measured cost yet.
  Round within_time(const Round& round) const {
    return plan_.seconds && round.first > 0 ? affordable(round, scores(), documents_.size(), left()) : round;
  }

  void score(const Round& round) {
    const auto passes = static_cast<double>((round.last - round.first) * round.cells.size());
    const double before = spent_;
    double scored = 0;
    for (std::size_t d = round.first; d < round.last; ++d) {
      std::optional<ReferencePass> reference;
      for (const std::size_t n : round.cells) {
        if (out_of_time_) return;
        score(n, d, reference);
        const double expected = before + (spent_ - before) / ++scored * passes;
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
  const std::function<void(double, double)>& progress_;
  std::vector<CellResult> results_;
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
