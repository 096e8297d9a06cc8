// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "calibrate/compare/shared_starts.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "model/passes_together.h"
#include "ranks/watch.h"
#include "turns/turns.h"

namespace kvs::inline compare {
namespace {

using Indices = std::vector<std::size_t>;

Json to_record(const Round& round) {
  return {{"first", round.first}, {"last", round.last}, {"configurations", round.configurations}};
}
Round round_from(const JsonCursor& record, std::size_t documents, std::size_t configurations) {
  const std::size_t first = record_size(record.at("first"), 0, documents);
  return {first, record_size(record.at("last"), first, documents),
          record_indices(record.at("configurations"), configurations)};
}

/// The full cache's pass over a document, once it is computed.
struct Reference {
  std::size_t document = 0;
  std::optional<ReferencePass> pass = std::nullopt;
};

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
        starts_(decoder, documents, make, plan.prefix),
        results_(make.size()) {}

  std::vector<ConfigurationResult> run() {
    Indices active(make_.size());
    std::iota(active.begin(), active.end(), 0);
    std::size_t done = 0;
    while (const std::optional<Round> round = next_round(done, active)) {
      starts_.share(round->configurations);
      keeps_logits_ = round->configurations.size() > 1 && logits_bytes(decoder_.model().config(), scored_tokens()) <=
                                                              SharedStarts::max_bytes(decoder_.model());
      score(*round);
      done = round->last;
      active.clear();
      std::ranges::copy_if(round->configurations, std::back_inserter(active),
                           [&](std::size_t n) { return results_[n].scores.kl.size() == done; });
      if (ranks_.is_root() && !plan_.all && done < documents_.size()) stop_beaten(active);
    }
    return std::move(results_);
  }

 private:
  /// Returns on every rank the round that rank 0 reads from its records or plans. Returns nothing when all documents
  /// are scored or the time is over.
  std::optional<Round> next_round(std::size_t done, const Indices& active) {
    Json next;
    if (ranks_.is_root() && done < documents_.size() && !active.empty()) {
      if (records_.replays()) {
        const JsonCursor record = records_.next().at("round");
        require_record(record.at("first"), done);
        const Round replayed = round_from(record, documents_.size(), make_.size());
        if (!std::ranges::includes(active, replayed.configurations))
          record.at("configurations").fail("some of the configurations of the round before");
        next = to_record(replayed);
      } else {
        const std::size_t target =
            plan_.all ? documents_.size() : std::min(documents_.size(), std::max<std::size_t>(1, 2 * done));
        next = to_record(within_time({done, target, active}));
        records_.keep({{"round", next}});
      }
    }
    next = ranks_.broadcast(std::move(next));
    if (next.is_null()) return std::nullopt;
    const Round round = round_from(JsonCursor(next, "round"), documents_.size(), make_.size());
    return round.last == round.first ? std::nullopt : std::optional(round);
  }

  /// Returns the remaining seconds of a share of the time limit.
  double left(double share = 1) const {
    return plan_.seconds ? share * *plan_.seconds - spent_ / static_cast<double>(ranks_.size()) : 0;
  }
  std::vector<RaceScores> scores() const {
    std::vector<RaceScores> all;
    for (const ConfigurationResult& result : results_) all.push_back(result.scores);
    return all;
  }
  /// Fits a round to the remaining time. The first document is not limited, as no cost is measured yet.
  Round within_time(const Round& round) const {
    return plan_.seconds && round.first > 0 ? fit_to_time(round, scores(), documents_.size(), left()) : round;
  }

  /// Returns the passes of a round and of the later rounds if every configuration stays.
  double passes_from(const Round& round) const {
    return static_cast<double>((documents_.size() - round.first) * round.configurations.size());
  }
  /// Returns `seconds`, or all ranks' seconds of the time limit if that is less.
  double at_most(double seconds) const {
    return plan_.seconds ? std::min(seconds, *plan_.seconds * static_cast<double>(ranks_.size())) : seconds;
  }

  /// Runs the passes of a round, document by document. Passes in the records are read, then the other passes are
  /// computed. The first round ends with its time.
  void score(const Round& round) {
    constexpr double kFirstRound = 0.5;
    const double share = documents_.size() > 1 ? kFirstRound : 1;
    const std::size_t configurations = round.configurations.size(),
                      passes = (round.last - round.first) * configurations;
    const double before = spent_;
    std::size_t scored = 0;
    bool out_of_time = false;
    const auto take = [&](const JsonCursor& record) {
      if (out_of_time) return;
      out_of_time = round.first == 0 && record.has("out_of_time");
      if (out_of_time) return;
      require_record(record.at("document"), round.first + scored / configurations);
      require_record(record.at("configuration"), round.configurations[scored % configurations]);
      add(record);
      const double pace = (spent_ - before) / static_cast<double>(++scored);
      if (progress_) progress_(spent_, std::max(spent_, at_most(before + pace * passes_from(round))));
    };
    while (records_.replays() && scored < passes && !out_of_time) take(records_.next());
    const Json rest = ranks_.broadcast({{"first", out_of_time ? passes : scored}, {"seconds", left(share)}});
    const double seconds_left = rest.at("seconds").get<double>();
    double own_seconds = 0;
    const auto measure = [&](std::size_t pass) -> UnitResult {
      if (plan_.seconds && round.first == 0 && own_seconds > seconds_left) return {Json{{"out_of_time", true}}};
      Json record = scored_pass(round.configurations[pass % configurations], round.first + pass / configurations);
      own_seconds += record.at("seconds").get<double>();
      return {std::move(record)};
    };
    ranks_.share({.first = rest.at("first").get<std::size_t>(),
                  .last = passes,
                  .per_document = configurations,
                  .together = passes_together(decoder_.model(), documents_.front().size())},
                 measure, [&](std::size_t, const UnitResult& result) {
                   if (!out_of_time) records_.keep(result.record);
                   take(JsonCursor(result.record, "pass"));
                 });
    reference_.reset();
    starts_.clear();
  }

  Json scored_pass(std::size_t n, std::size_t d) {
    check_interrupt();
    note_document(d);
    const double start = turn_seconds();
    EvaluationPlan plan{.make = make_[n], .last = documents_[d].size() - 1 - plan_.prefix, .parts = kComparedParts};
    const auto reference = reference_of(d, plan);
    plan.start = starts_.of(n, d);
    Json record{{"document", d}, {"configuration", n}};
    try {
      const Evaluation evaluation = evaluate_document(decoder_, documents_[d], plan, &*reference->pass);
      require_finite(evaluation.sum);
      if (const double kl = evaluation.full->divergence.kl; !std::isfinite(kl))
        throw Error(ErrorCode::kData, "divergence", "found " + std::to_string(kl) + ", expected a finite number");
      record["evaluation"] = kvs::to_record(evaluation);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kData) throw;
      record["error"] = error.what();
    }
    record["seconds"] = turn_seconds() - start;
    return record;
  }

  /// Returns the reference of a document. The first pass that asks computes it; others that run in turns wait for it.
  std::shared_ptr<const Reference> reference_of(std::size_t document, const EvaluationPlan& plan) {
    const bool first = !reference_ || reference_->document != document;
    if (first) reference_ = std::make_shared<Reference>(Reference{.document = document});
    const std::shared_ptr<Reference> reference = reference_;
    if (first) reference->pass = full_pass(documents_[document], plan);
    wait_until([&] { return reference->pass.has_value(); });
    return reference;
  }
  /// Computes the reference pass of the full cache. A failure here is an error of the model, not of a configuration.
  ReferencePass full_pass(std::span<const std::int32_t> document, const EvaluationPlan& plan) {
    ReferencePass pass = reference_pass(decoder_, document, plan_.prefix, plan);
    require_finite(pass.sum);
    if (keeps_logits_) keep_logits(decoder_, plan_.prefix, plan, pass);
    return pass;
  }
  static void require_finite(const PerplexitySum& sum) {
    if (!std::isfinite(sum.mean()))
      throw Error(ErrorCode::kData, "loss",
                  "found a mean of " + std::to_string(sum.mean()) + " nats a token, expected a finite number");
  }

  void add(const JsonCursor& record) {
    ConfigurationResult& result = results_[record.at("configuration").unsigned_integer()];
    const double seconds = record_seconds(record);
    spent_ += seconds;
    if (record.has("error")) result = {.error = record.at("error").string()};
    if (!result.error.empty()) return;
    const JsonCursor stored = record.at("evaluation");
    const Evaluation document = evaluation_from(stored);
    if (!is_scored(document)) stored.fail("the losses of " + std::to_string(scored_tokens()) + " tokens");
    result.sum += document;
    const Divergence& divergence = document.full->divergence;
    result.scores.kl.push_back(divergence.kl / static_cast<double>(divergence.tokens));
    result.scores.bytes = static_cast<double>(result.sum.cache.peak.stored);
    result.scores.seconds += seconds;
  }

  std::size_t scored_tokens() const { return documents_.front().size() - 1 - plan_.prefix; }
  bool is_scored(const Evaluation& document) const {
    const std::size_t tokens = scored_tokens();
    return document.sum.scored == tokens && document.full && document.full->divergence.tokens == tokens &&
           document.parts.size() == 1 && document.parts.front().size() == std::min(kComparedParts, tokens) &&
           std::isfinite(document.sum.mean()) && std::isfinite(document.full->sum.mean());
  }

  void stop_beaten(Indices& active) {
    const std::vector<bool> stops = is_dominated(scores(), active);
    Indices still;
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
  SharedStarts starts_;
  std::vector<ConfigurationResult> results_;
  bool keeps_logits_ = false;             // in this round
  std::shared_ptr<Reference> reference_;  // of the last document
  double spent_ = 0;
};

}  // namespace

std::vector<ConfigurationResult> score_configurations(Decoder& decoder,
                                                      std::span<const std::vector<std::int32_t>> documents,
                                                      std::span<const std::function<Cache()>> make,
                                                      const ComparisonPlan& plan, RunRecords& records,
                                                      const std::function<void(double, double)>& progress) {
  return Comparison(decoder, documents, make, plan, records, progress).run();
}

}  // namespace kvs::inline compare
