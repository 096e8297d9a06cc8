#include "eval/latency.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/evaluation_report.h"
#include "io/file.h"
#include "model/model_json.h"
#include "results/latency_chart.h"

namespace kvs {
namespace {

constexpr std::int64_t kLongestRun = 1 << 24, kMostRepeats = 1000;

LatencyPlan make_plan(const Options& options) {
  LatencyPlan plan;
  plan.lengths = options.integers("lengths", 1, static_cast<std::size_t>(kLongestRun));
  std::ranges::sort(plan.lengths);
  plan.decode = static_cast<std::size_t>(options.integer("decode", 1, kLongestRun));
  plan.repeats = static_cast<std::size_t>(options.integer("repeats", 1, kMostRepeats));
  const std::size_t tokens = plan.lengths.back() + plan.decode;
  if (const auto window = static_cast<std::size_t>(options.integer("window", 2, kLongestRun)); tokens > window)
    throw Error(ErrorCode::kUsage, "--lengths",
                "found " + std::to_string(plan.lengths.back()) + " and " + std::to_string(plan.decode) +
                    " to decode, expected no more than --window's " + std::to_string(window) + " in all");
  return plan;
}

void check_latency_options(const Options& options) {
  require_partner(options, std::array<std::string_view, 2>{"force", "no-lock"}, std::array<std::string_view, 1>{"out"});
  for (const std::string& words : options.list("cache")) check_cache_words(words, "--cache");
  (void)make_plan(options);
}

OptionTable latency_options() {
  OptionTable table(
      "kvcalibrate latency --model PATH --text PATH --cache \"NAME [NAME=VALUE …]\" … [options]",
      "Times prefill and decoding per token by length, the full cache and others taking turns.\n" +
          cache_method_lines(),
      {"kvcalibrate latency --model SmolLM2.gguf --text book.txt --window 2064 --lengths 512,1024,2048 --cache "
       "\"freqkv cache_size=512\" \"lagkv ratio=0.25\" --out latency.json",
       "kvcalibrate latency --model SmolLM2.gguf --text book.txt --config elitekv.json"});
  table.list("cache", "CACHE", "a method with its parameters, as one word; may repeat")
      .list("config", "FILE", "a config of a method of the list above, of elitekv or of transform; may repeat")
      .value("lengths", "LIST", "tokens of the prefill, within --window", "256,512,992")
      .from(1, kLongestRun)
      .value("decode", "N", "tokens that follow one at a time", "16")
      .from(1, kLongestRun)
      .value("repeats", "N", "of each measurement, after one that does not count", "5")
      .from(1, kMostRepeats)
      .value("out", "FILE", "also write the JSON result here, and the figure beside it");
  add_other_weights(table);
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, false);
  table.check(check_latency_options);
  return table;
}

/// By the names that outputs give them, the full cache first.
std::vector<std::pair<std::string, CacheChoice>> choose_caches(const Options& options, const ModelSource& source) {
  std::vector<std::pair<std::string, CacheChoice>> choices{{"full", cache_of_words("full", "--cache", source)}};
  for (const std::string& words : options.list("cache"))
    choices.emplace_back(words, cache_of_words(words, "--cache", source));
  for (const std::string& path : options.list("config"))
    choices.emplace_back(std::filesystem::path(path).stem().string(), cache_of_config(path, source));
  return choices;
}

std::string heading(const ModelSession& session, const LatencyPlan& plan) {
  return session.config().name + " · " + std::string(name_of(session.backend->compute_type())) + " on " +
         std::string(session.backend->device()) + " · medians of " + std::to_string(plan.repeats);
}

draw::Chart chart_of(const Json& latency, const std::string& title) {
  std::vector<CacheTimes> caches;
  for (const Json& cache : latency.at("caches"))
    caches.push_back({cache.at("label").get<std::string>(),
                      {cache.at("prefill_ms").get<std::vector<double>>(), {}},
                      {cache.at("decode_ms").get<std::vector<double>>(), {}}});
  return latency_chart(title, latency.at("lengths").get<std::vector<std::size_t>>(), caches);
}

}  // namespace

void run_latency(Arguments arguments) {
  const auto options = latency_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  std::optional<OutputLock> lock;
  if (options->has("out")) {
    const std::filesystem::path out = options->text("out");
    check_outputs(out, figure_paths(out, ""), *options, run);
    lock.emplace(out, run.lock, figure_paths(out, ""));
  }
  const LatencyPlan plan = make_plan(*options);
  auto source = open_model(*options);
  const auto choices = choose_caches(*options, *source);
  const Corpus corpus = load_corpus(*options, run, *source);
  const std::vector<std::int32_t>& document = corpus.documents.front().tokens;
  const std::size_t tokens = plan.lengths.back() + plan.decode;
  ModelSession session = load_model(std::move(source), *options, run);
  std::vector<TimedCache> caches;
  caches.reserve(choices.size());
  for (const auto& [words, choice] : choices) caches.push_back({words, cache_maker(choice, session, tokens)});
  double flops = 0;
  for (const std::size_t length : plan.lengths)
    flops += static_cast<double>(caches.size() * (plan.repeats + 1)) *
             forward_flops(session.config(), static_cast<double>(length + plan.decode));
  announce({.flops = flops,
            .memory_bytes = session_memory(session, tokens) + 4 * full_cache_bytes(session.config(), tokens)},
           *session.backend, run);
  Progress progress("latency", static_cast<double>(plan.lengths.size() * caches.size() * (plan.repeats + 1)),
                    run.quiet);
  const auto cells = measure_latency(*session.decoder, document, caches, plan,
                                     [&](std::size_t done) { progress.update(static_cast<double>(done)); });

  if (!clock_went_on(cells))
    throw Error(ErrorCode::kEnvironment, "clock", "stood still during a run, expected one that goes on");

  const Provenance record = provenance(*options, run, corpus);
  Json result{{"format", "kvspectrum-latency"},
              {"version", 1},
              {"model", model_json(session.config(), session.source->sha256(), tokens)},
              {"command", record.command},
              {"tool_version", record.tool_version},
              {"text_sha256", record.text_sha256},
              {"bos", bos_json(corpus.bos)},
              {"device", session.backend->device()},
              {"dtype", name_of(session.backend->compute_type())}};
  result.update(record.inputs);
  result.update(latency_json(plan, caches, cells));
  if (options->has("out"))
    write_outputs(options->text("out"), result, run, [&] {
      return RunFigures{{"", chart_of(result, heading(session, plan))}};
    });
  print_result(run, result, latency_table(result));
}

}  // namespace kvs
