#include "cli/kvcalibrate/compare_front.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "cli/common/progress.h"
#include "cli/kvcalibrate/compare_cells.h"
#include "cli/kvcalibrate/eval_task.h"
#include "cli/kvcalibrate/task_input.h"
#include "eval/latency.h"
#include "tasks/task_report.h"

namespace kvs {
namespace {

constexpr std::size_t kTimedRuns = 3;

/// Questions as they are asked.
struct FrontQuestions {
  FrontQuestions(const Options& options, const RunOptions& run, const ModelSource& source)
      : tokenizer(source.load_tokenizer()), input(task_input(options, run, source.config(), *tokenizer)) {
    longest = longest_question(input, plan(options), source.config(), run, options.text("task"));
  }
  TaskPlan plan(const Options& options) const {
    return {.tokenizer = *tokenizer,
            .rule = input.rule,
            .answer_tokens = input.answer_tokens,
            .bos = chosen_bos(*tokenizer, bos_choice(options))};
  }

  std::shared_ptr<const Tokenizer> tokenizer;
  TaskInput input;
  std::size_t longest = 0;
};

Json retrieval_json(const std::string& task, std::span<const TaskResult> results) {
  const Json found = task_json(results);
  Json json{{"task", task},
            {"accuracy", found.at("accuracy")},
            {"log_likelihood", found.at("log_likelihood")},
            {"questions", results.size()}};
  if (found.contains("difference")) json["difference"] = found.at("difference");
  return json;
}

/// Seconds that a document of the comparison takes with the full cache and every cell of the front, about.
double pass_seconds(std::span<const FrontCell> front) {
  double sum = 0;
  for (const FrontCell& cell : front) sum += cell.seconds;
  return sum + sum / static_cast<double>(std::max<std::size_t>(1, front.size()));
}

/// How many questions fit; a tenth is left for others that take longer.
/// @param seconds  that all of them may take;  @param one  that one takes
std::size_t recorded_count(RunRecords& records, double seconds, double one, std::size_t all) {
  constexpr double kSafe = 0.9;
  if (records.replays()) return record_size(records.next().at("questions"), 0, all);
  const double fit = one > 0 ? kSafe * seconds / one : seconds > 0 ? static_cast<double>(all) : 0;
  const auto count = static_cast<std::size_t>(std::clamp(fit, 0.0, static_cast<double>(all)));
  records.keep({{"questions", count}});
  return count;
}

/// What cannot be computed with one cache is an error of that cache alone.
Json answer_or_error(const std::function<Json()>& ask) {
  try {
    return ask();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    return {{"error", error.what()}};
  }
}

}  // namespace

void check_questions(const Options& options, const RunOptions& run, const ModelSource& source) {
  (void)FrontQuestions(options, run, source);
}

FrontAnswers ask_front(const Options& options, const RunOptions& run, const ModelSession& session, std::size_t tokens,
                       std::span<const FrontCell> front, RunRecords& records, std::optional<double> seconds) {
  const FrontQuestions questions(options, run, *session.source);
  const TaskPlan plan = questions.plan(options);
  const auto& samples = questions.input.samples;
  const std::size_t caches = 1 + front.size();
  const auto ask_one = [&](const CacheChoice& choice, std::size_t n) {
    const bool whole = choice.method->prefill == Prefill::kWhole;
    CachedAnswers model(*session.decoder,
                        prompt_cache_maker({choice, whole ? "context" : "stepwise"}, session, questions.longest));
    return run_task(std::span(samples).subspan(n, 1), plan, model, nullptr).front();
  };
  std::size_t count = samples.size();
  if (seconds) {  // a prompt is prefilled with and without its answer
    const double share = static_cast<double>(questions.longest) / static_cast<double>(tokens);
    count = recorded_count(records, *seconds, 2 * share * pass_seconds(front), count);
    if (count == 0) {
      remark("note: no time is left to ask the questions of --task " + options.text("task"), run.quiet);
      return {nullptr, std::vector<Json>(front.size())};
    }
  }
  Progress progress("compare: " + options.text("task"), static_cast<double>(caches * samples.size()), run.quiet);
  std::vector<std::vector<TaskResult>> results(caches);
  std::map<std::size_t, std::string> errors;  // of caches: the first
  for (std::size_t n = 0; n < count; ++n) {
    Json record;
    if (records.replays()) {
      record = records.next().value();
    } else {
      const auto start = std::chrono::steady_clock::now();
      record["question"] = n;
      for (std::size_t i = 0; i < caches; ++i) {
        const CacheChoice choice = i == 0 ? full_choice() : cell_choice(*front[i - 1].of, *session.source);
        record["answers"].push_back(answer_or_error([&] { return to_json(ask_one(choice, n)); }));
        progress.update(static_cast<double>(n * caches + i + 1));
      }
      record["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      records.keep(record);
    }
    const JsonCursor asked(record, "question " + std::to_string(n));
    require_record(asked.at("question"), n);
    if (asked.at("answers").array_size() != caches) asked.at("answers").fail("those of " + std::to_string(caches));
    if (n == 0 && seconds)
      count = std::max<std::size_t>(1, recorded_count(records, *seconds, record_seconds(asked), samples.size()));
    for (std::size_t i = 0; i < caches; ++i) {
      const JsonCursor answer = asked.at("answers").at(i);
      if (answer.has("error"))
        errors.try_emplace(i, "question " + std::to_string(n + 1) + ": " + answer.at("error").string());
      if (errors.contains(i) || errors.contains(0)) continue;
      results[i].push_back(task_result_from(answer, samples[n], false));
      if (i > 0) results[i].back().full = results.front().back().answer;
    }
  }
  for (const auto& [i, error] : errors)
    remark("note: " + options.text("task") + ", " + (i == 0 ? "full cache" : front[i - 1].of->label) + ": " + error,
           run.quiet);
  const auto found = [&](std::size_t i) {
    return errors.contains(0) || errors.contains(i) ? Json() : retrieval_json(options.text("task"), results[i]);
  };
  FrontAnswers answers{found(0), {}};
  for (std::size_t i = 1; i < caches; ++i) answers.cells.push_back(found(i));
  return answers;
}

Json time_front(const ModelSession& session, const RunOptions& run, std::span<const std::int32_t> document,
                std::size_t decode, std::span<const FrontCell> front, std::optional<double> seconds) {
  if (seconds && pass_seconds(front) > *seconds) {
    remark("note: no time is left to time the front", run.quiet);
    return nullptr;
  }
  std::vector<TimedCache> caches{{"full", cache_maker(full_choice(), session, document.size())}};
  for (const FrontCell& cell : front)
    caches.push_back({cell.of->label, cache_maker(cell_choice(*cell.of, *session.source), session, document.size())});
  const LatencyPlan plan{.lengths = {document.size() - decode},
                         .decode = decode,
                         .repeats = kTimedRuns,
                         .warm_up = false,
                         .seconds = seconds};
  std::vector<std::vector<LatencyCell>> cells;
  try {
    Progress progress("compare: times", static_cast<double>(kTimedRuns * caches.size()), run.quiet);
    cells = measure_latency(*session.decoder, document, caches, plan,
                            [&](std::size_t runs) { progress.update(static_cast<double>(runs)); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    remark(std::string("note: the front is not timed: ") + error.what(), run.quiet);
    return nullptr;
  }
  if (!clock_went_on(cells)) {
    remark("note: the clock stood still: the front is not timed", run.quiet);
    return nullptr;
  }
  const Json found = latency_json(plan, caches, cells).at("caches");
  // The ratio is that of runs that took turns; a rate by itself moves with the machine.
  const double full = 1000 / found[0].at("decode_ms")[0].get<double>();
  const auto ratio = [&](std::size_t n) { return 1 / found[n].at("decode_ratio")[0].get<double>(); };
  Json speeds{{"format", "kvspectrum-speeds"}, {"version", 1}, {"tokens", document.size()}, {"cells", Json::array()}};
  for (std::size_t n = 0; n < front.size(); ++n)
    speeds["cells"].push_back({{"label", front[n].of->label},
                               {"budget", front[n].budget},
                               {"decode_tokens_per_second", full * ratio(n + 1)},
                               {"full_decode_tokens_per_second", full},
                               {"ratio", ratio(n + 1)}});
  return speeds;
}

}  // namespace kvs
