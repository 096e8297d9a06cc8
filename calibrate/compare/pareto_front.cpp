// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/pareto_front.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "calibrate/compare/configurations.h"
#include "calibrate/prompt_caches.h"
#include "eval/latency.h"
#include "run/progress.h"
#include "tasks/task_summary.h"

namespace kvs::inline compare {
namespace {

constexpr std::size_t kTimedRuns = 3;

Retrieval retrieval_of(const std::string& task, std::span<const TaskResult> results) {
  const TaskSummary found = task_summary(results);
  Retrieval retrieval{task, found.means.accuracy, found.means.log_likelihood, results.size()};
  if (found.reference) retrieval.difference = found.reference->difference;
  return retrieval;
}

/// Returns the approximate seconds of a comparison document with the full cache and the whole front.
double pass_seconds(std::span<const FrontConfiguration> front) {
  double sum = 0;
  for (const FrontConfiguration& one : front) sum += one.seconds;
  return sum + sum / static_cast<double>(std::max<std::size_t>(1, front.size()));
}

/// Returns the number of questions that fit. A tenth of the time is kept for questions that take longer.
/// @param seconds  time limit of all questions;  @param one  seconds of one question
std::size_t recorded_count(RunRecords& records, double seconds, double one, std::size_t all) {
  constexpr double kSafe = 0.9;
  if (records.replays()) return record_size(records.next().at("questions"), 0, all);
  const double fit = one > 0 ? kSafe * seconds / one : seconds > 0 ? static_cast<double>(all) : 0;
  const auto count = static_cast<std::size_t>(std::clamp(fit, 0.0, static_cast<double>(all)));
  records.keep({{"questions", count}});
  return count;
}

/// Returns the answer, or the error if the cache cannot compute one: the error then belongs to that cache only.
Json answer_or_error(const std::function<Json()>& ask) {
  try {
    return ask();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    return {{"error", error.what()}};
  }
}

/// Asks the full cache and the caches of the front one question after the other.
class FrontAsking {
 public:
  FrontAsking(const Run& run, const TaskInput& questions, std::span<const FrontConfiguration> front)
      : run_(run), questions_(questions), front_(front), results_(caches()) {}

  std::size_t caches() const noexcept { return 1 + front_.size(); }
  const std::vector<TaskSample>& samples() const noexcept { return questions_.questions.samples; }
  std::size_t longest() const noexcept { return questions_.longest; }

  /// Asks every cache question `n`. @param asked  called after each cache
  Json ask(std::size_t n, const std::function<void(std::size_t)>& asked) const {
    const auto start = std::chrono::steady_clock::now();
    Json record{{"question", n}};
    for (std::size_t i = 0; i < caches(); ++i) {
      record["answers"].push_back(answer_or_error([&] { return to_json(answer(i, n)); }));
      asked(n * caches() + i + 1);
    }
    record["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return record;
  }
  /// Takes the record of question `n`, from this run or an earlier one.
  void take(const JsonCursor& asked, std::size_t n) {
    require_record(asked.at("question"), n);
    if (asked.at("answers").array_size() != caches()) asked.at("answers").fail("those of " + std::to_string(caches()));
    for (std::size_t i = 0; i < caches(); ++i) {
      const JsonCursor answer = asked.at("answers").at(i);
      if (answer.has("error"))
        errors_.try_emplace(i, "question " + std::to_string(n + 1) + ": " + answer.at("error").string());
      if (errors_.contains(i) || errors_.contains(0)) continue;
      results_[i].push_back(task_result_from(answer, samples()[n], false));
      if (i > 0) results_[i].back().full = results_.front().back().answer;
    }
  }
  FrontAnswers answers() const {
    const std::string& task = questions_.task;
    for (const auto& [i, error] : errors_)
      run_.note(task + ", " + (i == 0 ? "full cache" : front_[i - 1].of->label) + ": " + error);
    const auto found = [&](std::size_t i) {
      return errors_.contains(0) || errors_.contains(i) ? std::nullopt : std::optional(retrieval_of(task, results_[i]));
    };
    FrontAnswers answers{found(0), {}};
    for (std::size_t i = 1; i < caches(); ++i) answers.configurations.push_back(found(i));
    return answers;
  }

 private:
  TaskResult answer(std::size_t cache, std::size_t n) const {
    const CacheChoice choice = cache == 0 ? full_choice() : cache_choice(*front_[cache - 1].of, run_.model());
    const bool whole = choice.method->prefill == Prefill::kWhole;
    CachedAnswers model(run_.decoder(), prompt_cache_maker({choice, whole ? "context" : "stepwise"}, run_.backend(),
                                                           run_.config(), longest()));
    return run_task({&samples()[n], 1}, questions_.plan, model, nullptr).front();
  }

  const Run& run_;
  const TaskInput& questions_;
  std::span<const FrontConfiguration> front_;
  std::vector<std::vector<TaskResult>> results_;
  std::map<std::size_t, std::string> errors_;  // the first error of each cache
};

std::vector<TimedCache> timed_caches(const Run& run, std::span<const FrontConfiguration> front, std::size_t tokens) {
  std::vector<TimedCache> caches{{"full", cache_maker(full_choice(), run.backend(), run.config(), tokens)}};
  for (const FrontConfiguration& one : front)
    caches.push_back(
        {one.of->label, cache_maker(cache_choice(*one.of, run.model()), run.backend(), run.config(), tokens)});
  return caches;
}

/// @param caches  the full cache comes first
ComparisonSpeeds speeds_of(std::span<const CacheLatency> caches, std::span<const FrontConfiguration> front,
                           std::size_t tokens) {
  // The ratio is of interleaved runs. An absolute rate varies with the machine's load.
  const double full = 1000 / caches[0].decode_ms[0];
  ComparisonSpeeds speeds{.tokens = tokens};
  for (std::size_t n = 0; n < front.size(); ++n) {
    const double ratio = 1 / caches[n + 1].decode_ratio[0];
    speeds.configurations.push_back({front[n].of->label, front[n].budget, full * ratio, full, ratio});
  }
  return speeds;
}

}  // namespace

FrontAnswers ask_pareto_front(const Run& run, const TaskInput& questions, std::size_t tokens,
                              std::span<const FrontConfiguration> front, RunRecords& records,
                              std::optional<double> seconds) {
  FrontAsking asking(run, questions, front);
  std::size_t count = asking.samples().size();
  if (seconds) {  // each prompt is prefilled twice: with and without its answer
    const double share = static_cast<double>(asking.longest()) / static_cast<double>(tokens);
    count = recorded_count(records, *seconds, 2 * share * pass_seconds(front), count);
    if (count == 0) {
      run.note("the questions of --task " + questions.task + " do not fit the time that is left for them");
      return {std::nullopt, std::vector<std::optional<Retrieval>>(front.size())};
    }
  }
  Progress progress("compare: " + questions.task, asking.caches() * asking.samples().size(), run.quiet());
  for (std::size_t n = 0; n < count; ++n) {
    const bool replays = records.replays();
    const Json record = replays ? records.next().value() : asking.ask(n, progress.counter());
    if (!replays) records.keep(record);
    const JsonCursor asked(record, "question " + std::to_string(n));
    asking.take(asked, n);
    if (n == 0 && seconds)
      count =
          std::max<std::size_t>(1, recorded_count(records, *seconds, record_seconds(asked), asking.samples().size()));
  }
  return asking.answers();
}

std::optional<ComparisonSpeeds> time_pareto_front(const Run& run, std::span<const std::int32_t> document,
                                                  std::size_t decode, std::span<const FrontConfiguration> front,
                                                  std::optional<double> seconds) {
  const auto refuse = [&](const std::string& reason) {
    run.note(reason);
    return std::nullopt;
  };
  if (seconds && pass_seconds(front) > *seconds)
    return refuse("the timed passes of the front do not fit the time that is left for them");
  const std::vector<TimedCache> caches = timed_caches(run, front, document.size());
  const LatencyPlan plan{.lengths = {document.size() - decode},
                         .decode = decode,
                         .repeats = kTimedRuns,
                         .warm_up = false,
                         .seconds = seconds};
  std::vector<std::vector<LatencyCell>> cells;
  try {
    Progress progress("compare: times", kTimedRuns * caches.size(), run.quiet());
    cells = measure_latency(run.decoder(), document, caches, plan, progress.counter());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    return refuse(std::string("the front is not timed: ") + error.what());
  }
  if (!clock_went_on(cells)) return refuse("the clock stood still: the front is not timed");
  return speeds_of(latency_result(plan, caches, cells).caches, front, document.size());
}

}  // namespace kvs::inline compare
