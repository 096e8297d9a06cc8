// SPDX-License-Identifier: Apache-2.0
#include "eval/latency.h"

#include <algorithm>
#include <filesystem>

#include "calibrate/cache_options.h"
#include "calibrate/method_help.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs::inline cli {
namespace {

constexpr std::int64_t kMaxRepeats = 1000;

LatencyPlan make_plan(const Options& options) {
  LatencyPlan plan;
  plan.lengths = options.integers("lengths", 1, kMaxTokens);
  std::ranges::sort(plan.lengths);
  plan.decode = options.count("decode");
  plan.repeats = options.count("repeats");
  const std::size_t tokens = plan.lengths.back() + plan.decode;
  if (const std::size_t window = options.count("window"); tokens > window)
    throw Error(ErrorCode::kUsage, "--lengths",
                "found " + std::to_string(plan.lengths.back()) + " and " + std::to_string(plan.decode) +
                    " to decode, expected no more than --window's " + std::to_string(window) + " in all");
  return plan;
}

void check_latency_options(const Options& options) {
  require_partner(options, {"force", "no-lock"}, {"out"});
  for (const std::string& words : options.list("cache")) check_cache_words(words, "--cache");
  (void)make_plan(options);
}

OptionTable latency_options() {
  OptionTable table(
      "kvcalibrate latency --model PATH --text PATH --cache \"NAME [NAME=VALUE …]\" … [options]",
      "Measures the time of prefill and of decoding per token for several lengths. The full cache and the other caches "
      "take turns.\n" +
          cache_method_lines(),
      {"kvcalibrate latency --model SmolLM2.gguf --text book.txt --window 2064 --lengths 512,1024,2048 --cache "
       "\"freqkv cache_size=512\" \"lagkv ratio=0.25\" --out latency.json",
       "kvcalibrate latency --model SmolLM2.gguf --text book.txt --config elitekv.json"});
  table.list("cache", "CACHE", "a method with its parameters, quoted as one word; may repeat")
      .list("config", "FILE", "a config of any method; may repeat")
      .value("lengths", "LIST", "tokens of the prefill, at most --window with the decoded tokens", "256,512,992")
      .from(1, kMaxTokens)
      .value("decode", "N", "tokens to decode after the prefill, one at a time", "16")
      .from(1, kMaxTokens)
      .value("repeats", "N", "repeats of each measurement, after one warm-up", "5")
      .from(1, kMaxRepeats)
      .value("out", "FILE", "also write the JSON result to FILE, and the figure next to it");
  add_other_weights(table);
  add_model_run_options(table, false);
  table.check(check_latency_options);
  return table;
}

/// Returns the caches with their names in outputs. The full cache is first.
std::vector<std::pair<std::string, CacheChoice>> choose_caches(const Options& options, const ModelSource& source) {
  std::vector<std::pair<std::string, CacheChoice>> choices{{"full", cache_of_words("full", "--cache", source)}};
  for (const std::string& words : options.list("cache"))
    choices.emplace_back(words, cache_of_words(words, "--cache", source));
  for (const std::string& path : options.list("config"))
    choices.emplace_back(std::filesystem::path(path).stem().string(), cache_of_config(path, source));
  return choices;
}

std::vector<TimedCache> timed_caches(std::span<const std::pair<std::string, CacheChoice>> choices, const Run& run,
                                     std::size_t tokens) {
  std::vector<TimedCache> caches;
  for (const auto& [words, choice] : choices)
    caches.push_back({words, cache_maker(choice, run.backend(), run.config(), tokens)});
  return caches;
}

std::vector<std::vector<LatencyCell>> measure(const LatencyPlan& plan, const std::vector<TimedCache>& caches,
                                              const Run& run) {
  Progress progress("latency", plan.lengths.size() * caches.size() * (plan.repeats + 1), run.quiet());
  auto cells = measure_latency(run.decoder(), run.documents().front(), caches, plan, progress.counter());
  if (!clock_went_on(cells))
    throw Error(ErrorCode::kEnvironment, "clock", "stood still during a run, expected one that goes on");
  return cells;
}

void run_latency(const Options& options) {
  const LatencyPlan plan = make_plan(options);
  const std::size_t tokens = plan.lengths.back() + plan.decode;
  Run run(options);
  if (options.has("out")) {
    const std::filesystem::path out = options.text("out");
    run.take_outputs({.main = out, .others = figure_paths(out, "")});
  }
  run.open_model();
  const auto choices = choose_caches(options, run.model());
  run.read_texts();
  run.load();
  const std::vector<TimedCache> caches = timed_caches(choices, run, tokens);
  run.print_estimate(
      {.flops = latency_flops(plan, caches.size(), run.config()),
       .memory_bytes = session_memory(run.session(), tokens) + 4 * full_cache_bytes(run.config(), tokens)});
  LatencyResult result = latency_result(plan, caches, measure(plan, caches, run));
  result.head = run.result_head("kvspectrum-latency", tokens);
  result.inputs = run.input_digests();
  result.device = run.backend().device();
  result.dtype = name_of(run.backend().compute_type());
  run.finish(to_json(result), to_text(result), [&] {
    return RunFigures{{"", latency_chart(result.heading(), result)}};
  });
}

}  // namespace

const Subcommand kLatencyCommand{"latency", latency_options, run_latency};

}  // namespace kvs::inline cli
