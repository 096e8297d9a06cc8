#include "cli/kvcalibrate/compare_front.h"

#include "cli/common/progress.h"
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
    longest = longest_question(input, plan(options), source.config(), options.text("task"));
  }
  TaskPlan plan(const Options& options) const {
    return {.tokenizer = *tokenizer,
            .rule = input.rule,
            .answer_tokens = input.answer_tokens,
            .bos = options.on_off("bos") ? tokenizer->bos() : -1};
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

CacheChoice full_choice() { return {.name = "full", .method = find_cache_method("full")}; }

}  // namespace

void check_questions(const Options& options, const RunOptions& run, const ModelSource& source) {
  (void)FrontQuestions(options, run, source);
}

FrontAnswers ask_front(const Options& options, const RunOptions& run, const ModelSession& session,
                       std::span<const FrontCell> front) {
  const FrontQuestions questions(options, run, *session.source);
  const TaskPlan plan = questions.plan(options);
  const auto& samples = questions.input.samples;
  Progress progress("compare " + options.text("task"), static_cast<double>((front.size() + 1) * samples.size()),
                    run.quiet);
  std::size_t before = 0;
  const auto ask_all = [&](const CacheChoice& choice) {
    const bool whole = choice.method != nullptr && choice.method->prefill == Prefill::kWhole;
    CachedAnswers model(*session.decoder,
                        prompt_cache_maker({choice, whole ? "context" : "stepwise"}, session, questions.longest));
    auto results = run_task(samples, plan, model, nullptr,
                            [&](std::size_t done) { progress.update(static_cast<double>(before + done)); });
    before += samples.size();
    return results;
  };
  const std::vector<TaskResult> full = ask_all(full_choice());
  FrontAnswers answers{retrieval_json(options.text("task"), full), {}};
  for (const FrontCell& cell : front) {
    std::vector<TaskResult> results = ask_all(cell.choice);
    for (std::size_t n = 0; n < results.size(); ++n) results[n].full = full[n].answer;
    answers.cells.push_back(retrieval_json(options.text("task"), results));
  }
  return answers;
}

Json time_front(const ModelSession& session, std::span<const std::int32_t> document, std::size_t decode,
                std::span<const FrontCell> front) {
  std::vector<TimedCache> caches{{"full", cache_maker(full_choice(), session, document.size())}};
  for (const FrontCell& cell : front)
    caches.push_back({cell.label, cache_maker(cell.choice, session, document.size())});
  const LatencyPlan plan{.lengths = {document.size() - decode}, .decode = decode, .repeats = kTimedRuns};
  const auto cells = measure_latency(*session.decoder, document, caches, plan, [](std::size_t) {});
  const Json found = latency_json(plan, caches, cells).at("caches");
  const auto rate = [&](std::size_t n) { return 1000 / found[n].at("decode_ms")[0].get<double>(); };
  Json speeds{{"format", "kvspectrum-speeds"}, {"version", 1}, {"tokens", document.size()}, {"cells", Json::array()}};
  for (std::size_t n = 0; n < front.size(); ++n)
    speeds["cells"].push_back({{"label", front[n].label},
                               {"budget", front[n].budget},
                               {"decode_tokens_per_second", rate(n + 1)},
                               {"full_decode_tokens_per_second", rate(0)},
                               {"ratio", 1 / found[n + 1].at("decode_ratio")[0].get<double>()}});
  return speeds;
}

}  // namespace kvs
