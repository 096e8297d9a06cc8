// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "calibrate/budget/options.h"
#include "calibrate/budget/report.h"
#include "calibrate/budget/size.h"
#include "calibrate/config/config.h"
#include "calibrate/faedkv/chunk_race.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "export/engines/engine.h"
#include "export/exporter.h"
#include "model/model_tensors.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

OptionTable budget_options(const std::string& method, const std::string& summary) {
  const std::string command = "kvcalibrate " + method + " --model SmolLM2.gguf --text book.txt --window 512 ";
  OptionTable table(
      "kvcalibrate " + method + " --model PATH --text PATH --budget SIZE --out FILE [options]", summary,
      {command + "--documents 16 --budget 25% --out " + method + ".json",
       command + "--documents 16 --budget '4096B a token' --per-layer-rounds 1 --out " + method + ".json"});
  table.value("out", "FILE", "the config to write").required();
  add_budget_options(table, method);
  add_model_run_options(table, true);
  add_seed_option(table, "seed of the random order of documents");
  table.check([](const Options& options) {
    if (!options.has("budget")) miss_option("budget", "SIZE");
  });
  return table;
}

OptionTable freqkv_options() {
  return budget_options("freqkv",
                        "Chooses FreqKV's size, recent slots and sinks for a byte budget. With --per-layer-rounds: "
                        "chooses a size and γ for each layer.");
}

OptionTable lagkv_options() {
  return budget_options("lagkv",
                        "Chooses LagKV's partitions and the weight of values for a byte budget. With "
                        "--per-layer-rounds: chooses them for each layer.");
}

/// The documents that settings are chosen on, in an order that mixes the texts, followed by the held-out documents.
struct SplitDocuments {
  std::vector<std::vector<std::int32_t>> all;
  std::size_t held = 0;

  BudgetText text() const {
    const std::span documents(all);
    return {documents.first(all.size() - held), documents.last(held)};
  }
};

/// Moves the documents of --holdout-windows, or a quarter of all documents, to the end. Returns their number.
std::size_t hold_out(const Run& run, Corpus& corpus) {
  const std::size_t count = corpus.documents.size();
  if (!run.options().has("holdout-windows")) {
    if (count < 2)
      throw Error(ErrorCode::kUsage, "--documents", "found one document, expected two or more: one held out");
    hold_out(corpus, documents_to_hold_out(count));
    return documents_to_hold_out(count);
  }
  Corpus held = load_corpus(run.options(), run.settings(), run.model(), {}, {.windows = "holdout-windows"});
  for (Document& document : held.documents) {
    if (std::ranges::any_of(corpus.documents, [&](const Document& other) { return other.overlaps(document); }))
      throw Error(ErrorCode::kUsage, "--holdout-windows",
                  "found window " + std::to_string(document.window_index) + " of " + document.source +
                      ", expected none of --windows");
    corpus.documents.push_back(std::move(document));
  }
  return held.documents.size();
}

SplitDocuments split_documents(const Run& run) {
  Corpus corpus = run.corpus();
  SplitDocuments split;
  split.held = hold_out(run, corpus);
  auto tokens = tokens_of(corpus);
  const std::size_t measured = tokens.size() - split.held;
  for (const std::size_t n : shuffled_documents(measured, static_cast<std::uint64_t>(run.settings().seed)))
    split.all.push_back(std::move(tokens[n]));
  std::ranges::move(tokens.begin() + static_cast<std::ptrdiff_t>(measured), tokens.end(),
                    std::back_inserter(split.all));
  return split;
}

/// Returns the provenance of all measured and held-out documents.
Provenance provenance_of(const Run& run, const SplitDocuments& documents) {
  Provenance record = run.provenance();
  record.documents = documents.all.size();
  record.tokens = record.documents * documents.all.front().size();
  return record;
}

Estimate estimate_of(const Run& run, std::string_view method, const BudgetPlan& plan, const BudgetText& text) {
  const ModelConfig& model = run.config();
  const std::size_t length = text.measured.front().size();
  const auto tokens = static_cast<double>(length);
  // FLOPs: one pass, and the output head of the full cache's pass. Memory: residual streams, of every layer if bytes
  // are moved between layers.
  const double stream = sizeof(float) * tokens * static_cast<double>(model.d_model),
               kept = static_cast<double>(text.measured.size() +
                                          (plan.rounds > 0 ? text.measured.size() * model.layers() : 0));
  return {.flops = static_cast<double>(max_losses(model, method, plan, text)) *
                   (forward_flops(model, tokens) + head_flops(model, tokens)),
          .memory_bytes = session_memory(run.session(), length) + kept * stream + 4 * full_cache_bytes(model, length),
          .at_most = true};
}

BudgetCalibration calibrate(Run& run, std::string_view method, const BudgetPlan& plan, BudgetText text) {
  LiveSource states(run.decoder(), {text.measured.begin(), text.measured.end()});
  text.states = &states;
  PhaseProgress progress(run.quiet());
  return calibrate_to_budget(
      run.decoder(), method, plan, text,
      [&](std::size_t done, std::size_t most) { progress.update(std::string(method), done, most); }, run.journal(),
      &run.ranks());
}

/// Returns the engine whose types are chosen; nullptr: no engine.
const Engine* engine_in(const Options& options) {
  return options.takes("engine") && options.has("engine") ? &engine_of(options.text("engine"), "--engine") : nullptr;
}

/// Returns the plan of the options, with the types of an engine instead of the grid's.
BudgetPlan plan_of(const Run& run, double full, std::size_t tokens) {
  BudgetPlan plan = budget_plan(run.options(), full, tokens);
  if (const Engine* const engine = engine_in(run.options()))
    plan.offered = offered_types(*engine, run.config(), plan.fixed);
  return plan;
}

/// Returns how the engine is told the settings.
EngineUse use_of(const Engine& engine, const Json& settings, const ModelConfig& model) {
  const EngineCache cache({.method = &kFullMethod, .parameters = {{settings, "", ErrorCode::kInternal}}}, model);
  if (const std::string obstacle = engine.obstacle(cache); !obstacle.empty())
    throw Error(ErrorCode::kInternal, std::string(engine.name), obstacle);
  return use_in(engine, cache);
}

/// Returns the command that writes the engine's files; empty if it needs none, or files of another model format.
std::string export_command(const Run& run, const EngineUse& use) {
  const Exporter* const exporter = find_exporter(use.exporter);
  const bool gguf = run.model().format() == ModelFormat::kGguf;
  if (exporter == nullptr) return "";
  const bool folder = exporter->kind == StagedOutput::Kind::kFolder;
  if ((folder && gguf) || (exporter->for_gguf && !gguf)) return "";
  std::filesystem::path out = run.options().text("out");
  const std::string config = out.string();
  if (folder)
    out.replace_filename(out.stem().string() + '-' + std::string(exporter->name));
  else
    out.replace_extension(std::filesystem::path(exporter->preset).extension());
  return "  next: kvcalibrate export --to " + std::string(exporter->name) + " --config " + shell_quoted(config) +
         " --model " + shell_quoted(run.options().text("model")) + " --out " + shell_quoted(out.string()) + '\n';
}

void run_freqkv(const Options& options) { run_budget("freqkv", options); }
void run_lagkv(const Options& options) { run_budget("lagkv", options); }

}  // namespace

void run_budget(std::string_view method, const Options& options) {
  Run run(options);
  run.take_outputs(
      {.main = options.text("out"), .kind = RunOutputs::Kind::kConfig, .state = RunOutputs::State::kJournal});
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const SplitDocuments documents = split_documents(run);
  const BudgetText text = documents.text();
  const std::size_t tokens = text.measured.front().size();
  const double full = full_cache_bytes(run.config(), tokens);
  const BudgetPlan plan = plan_of(run, full, tokens);
  run.load();
  run.print_estimate(estimate_of(run, method, plan, text));
  const BudgetCalibration found = calibrate(run, method, plan, text);
  if (!run.is_root()) return;
  Json calibration{{"allocation", to_json(allocation_result(found))}};
  std::string told, next;
  if (const Engine* const engine = engine_in(options)) {
    const EngineUse use = use_of(*engine, found.settings(), run.config());
    calibration["engine"] = to_json(use);
    told = to_text(use);
    next = export_command(run, use);
  }
  if (next.empty()) next = next_command(method, options, run.model().format(), found.settings(), tokens);
  const Json config =
      make_config(std::string(method), run.config(), run.model().sha256(), found.settings(), std::move(calibration),
                  provenance_of(run, documents), budget_quality(found, tokens), {});
  run.finish(config, (method == "full" ? "store" : std::string(method)) + ": " +
                         budget_summary(found, tokens, static_cast<std::size_t>(full)) + told + next);
}

const Subcommand kFreqkvCommand{"freqkv", freqkv_options, run_freqkv, true};

const Subcommand kLagkvCommand{"lagkv", lagkv_options, run_lagkv, true};

}  // namespace kvs::inline cli
