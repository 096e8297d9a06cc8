// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>

#include "analyzers/retention.h"
#include "calibrate/common/ablation_options.h"
#include "calibrate/common/layer_options.h"
#include "calibrate/faedkv/retained_chunks.h"
#include "cli/kvspectrum/commands.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs::inline cli {
namespace {

/// Options whose values a config defines.
constexpr std::array<std::string_view, 5> kConfigOptions{"sinks", "recent", "transform", "key-space", "layers"};

OptionTable retain_options() {
  OptionTable table(
      "kvspectrum retain --model PATH --text PATH --out FILE [options]",
      "Measures perplexity when only the lowest or the highest frequencies are kept. Filters keys, values, or both, "
      "for several kept shares.",
      {"kvspectrum retain --model SmolLM2.gguf --text book.txt --documents 8 --out retain.json",
       "kvspectrum retain --model SmolLM2.gguf --text book.txt --protocol in-place --kept-shares 0.5,0.25 "
       "--out retain.json",
       "kvspectrum retain --model SmolLM2.gguf --text book.txt --config faedkv.json --out chunks.json"});
  table.value("out", "FILE", "the JSON result; the figure is written next to it")
      .required()
      .value("kept-shares", "SHARES", "shares of the frequency bins to keep", "0.9,0.75,0.5,0.25,0.1")
      .formerly("keep")
      .value("config", "FILE",
             "a faedkv config; the run keeps whole chunks of its grid: the lowest, the highest, and those of the "
             "largest Δ")
      .value("layers", "LAYERS", "layers to filter, such as 0,14-16", "all");
  add_ablation_options(table, {.sinks = "4", .recent = "0", .transform = "dct", .key_space = "k_pre"});
  add_other_weights(table);
  add_model_run_options(table, true);
  table.check([](const Options& options) {
    (void)ablation_setup(options, options.count("window", 2, kMaxTokens));
    if (options.text("protocol") == "in-place")
      refuse_options(options, {"prefix", "sinks", "recent"}, "--protocol in-place");
    if (options.has("config")) refuse_options(options, kConfigOptions, "--config");
  });
  return table;
}

RetentionPlan make_plan(const Options& options, const ModelSource& source, std::size_t tokens) {
  RetentionPlan plan;
  plan.setup = ablation_setup(options, tokens);
  plan.shares = options.shares("kept-shares");
  plan.layers = chosen_layers(options, source.config());
  if (options.has("config")) {
    retain_chunks_of(options.text("config"), source, plan);
    check_setup(plan.setup);
  }
  return plan;
}

Retention run_documents(const RetentionPlan& plan, Run& run) {
  const auto ops = run.backend().make_spectral_ops();
  AblationForward forward(run.decoder(), *ops, plan.setup);
  Progress progress("retain", run.documents().size(), run.quiet());
  return retain(forward, plan, run.documents(), *run.journal(), progress.counter());
}

void run_retain(const Options& options) {
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs({.main = out, .others = figure_paths(out, ""), .state = RunOutputs::State::kJournal});
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const RetentionPlan plan = make_plan(options, run.model(), run.tokens());
  run.load();
  run.print_estimate({.flops = retention_flops(plan, run.config(), run.documents().size()),
                      .memory_bytes = ablation_memory(
                          run.config(), static_cast<double>(run.session().model->weight_bytes()), plan.setup.tokens)});
  const RetentionResult result = retention_result({.head = run.result_head("kvspectrum-retention", run.tokens()),
                                                   .documents = run.documents().size(),
                                                   .window = run.tokens(),
                                                   .inputs = run.input_digests()},
                                                  plan, run_documents(plan, run));
  run.finish(to_json(result), to_text(result), [&] {
    return RunFigures{{"", retention_chart(result.heading(), result)}};
  });
}

}  // namespace

const Subcommand kRetainCommand{"retain", retain_options, run_retain};

}  // namespace kvs::inline cli
