#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "calibrate/faedkv/report.h"
#include "cli/common/ablation_options.h"
#include "cli/kvcalibrate/budget.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/faedkv_figures.h"
#include "core/error.h"
#include "draw/axis.h"
#include "io/file.h"
#include "io/finite.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs {
namespace {

constexpr std::array<std::string_view, 12> kAblationOptions{"layers", "chunks",     "sweep",     "keep",
                                                            "passes", "confidence", "prefix",    "sinks",
                                                            "recent", "transform",  "key-space", "spectrum"};

constexpr double kLeastConfidence = 0.5, kMostConfidence = 0.999999;

/// What the options say of documents of so many tokens.
AblationPlan ablation_grid(const Options& options, std::size_t tokens) {
  AblationPlan plan;
  plan.setup = ablation_setup(options, tokens);
  plan.grid = {plan.setup.transform, options.text("spectrum") == "full", 1, plan.setup.filtered()};
  const std::size_t bins = plan.grid.bins();
  plan.grid.chunks = static_cast<std::size_t>(options.integer("chunks", 1, static_cast<std::int64_t>(bins)));
  plan.chunk_counts = {plan.grid.chunks};
  if (options.has("sweep"))
    for (const std::size_t count : options.integers("sweep", 1, bins))
      if (std::ranges::find(plan.chunk_counts, count) == plan.chunk_counts.end()) plan.chunk_counts.push_back(count);
  plan.keep = options.share("keep");
  return plan;
}

OptionTable faedkv_options() {
  OptionTable table(
      "kvcalibrate faedkv --model PATH --text PATH --out FILE [options]",
      "Ablates each chunk of each layer's spectrum and keeps, per layer, those whose loss hurts most. With --budget: "
      "chooses recent tokens and chunks, of keys and values apart, for so many bytes; with --by-layer for each layer.",
      {"kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --documents 8 --out faedkv.json",
       "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --protocol in-place --chunks 8 "
       "--sweep 4,8,16,22 --dtype bf16 --out faedkv.json",
       "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --documents 16 --passes 5000 "
       "--out faedkv.json",
       "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --budget 50% --by-layer 1 "
       "--out faedkv.json"});
  table.value("out", "FILE", "the config to write; figures go beside it")
      .required()
      .value("layers", "LAYERS", "layers to ablate, such as 0,14-16", "all")
      .value("chunks", "C", "chunks that the spectrum is cut into", "22")
      .from(1)
      .value("sweep", "LIST", "also ablate with these chunk counts and draw perplexity against them")
      .from(1)
      .value("keep", "SHARE", "of the chunks, those to keep", "0.5")
      .value("passes", "N", "race: ablate a chunk in a document at most N times, undecided chunks first")
      .from(1)
      .value("confidence", "p", "race: a chunk that is clear of the threshold at p gets no more documents (0.95)")
      .from(kLeastConfidence, kMostConfidence);
  add_ablation_options(table, {.sinks = "10", .recent = "50", .transform = "dft", .key_space = "k_post"});
  table.value("spectrum", "half|full", "full: the paper's literal N bins", "half");
  add_budget_options(table, "faedkv");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  add_seed_option(table, "with --passes, --confidence or --budget: of the order of documents");
  table.check([](const Options& options) {
    require_partner(options, std::array<std::string_view, 1>{"seed"},
                    std::array<std::string_view, 3>{"passes", "confidence", "budget"});
    if (!has_budget(options, kAblationOptions))
      (void)ablation_grid(options, static_cast<std::size_t>(options.integer("window", 2, 1 << 24)));
  });
  return table;
}

std::optional<AblationPlan::Race> make_race(const Run& run, const AblationPlan& plan) {
  const Options& options = run.options();
  if (!options.has("passes") && !options.has("confidence")) return std::nullopt;
  const std::size_t documents = run.documents().size(), least = plan.variants() * least_documents(documents);
  AblationPlan::Race race{.passes = plan.variants() * documents,
                          .seed = static_cast<std::uint64_t>(run.settings().seed)};
  if (options.has("confidence")) race.confidence = options.real("confidence", kLeastConfidence, kMostConfidence);
  if (options.has("passes")) {
    race.passes = static_cast<std::size_t>(options.integer("passes", 1, std::int64_t{1} << 40));
    if (race.passes < least)
      throw Error(ErrorCode::kUsage, "--passes",
                  "found " + std::to_string(race.passes) + ", expected at least " + std::to_string(least) + ": " +
                      std::to_string(least_documents(documents)) + " documents for each of " +
                      std::to_string(plan.variants()) + " chunks");
  }
  if (documents == 1) run.note("one document has no interval, so no chunk can be decided");
  return race;
}

FaedkvPlan make_plan(const Run& run) {
  const Options& options = run.options();
  FaedkvPlan plan;
  static_cast<AblationPlan&>(plan) = ablation_grid(options, run.tokens());
  const auto most = static_cast<std::int64_t>(run.tokens());
  plan.sinks = static_cast<std::size_t>(options.integer("sinks", 0, most));
  plan.recent = static_cast<std::size_t>(options.integer("recent", 0, most));
  plan.layers = options.indices("layers", run.config().layers);
  plan.race = make_race(run, plan);
  return plan;
}

/// The passes that are made at most; each document's base, and once more with every layer cut down to its best chunks.
double ablation_flops(const AblationPlan& plan, const ModelConfig& model, std::size_t documents) {
  const double scored = static_cast<double>(plan.setup.tokens - plan.setup.first_scored());
  const auto past = static_cast<double>(plan.setup.first_scored());
  double layers = 0;
  for (const std::size_t layer : plan.layers)
    layers += static_cast<double>(model.layers - layer) * layer_flops(model, scored, past) + head_flops(model, scored);
  return static_cast<double>(plan.most_passes(documents)) * layers / static_cast<double>(plan.layers.size()) +
         static_cast<double>(2 * documents) * forward_flops(model, static_cast<double>(plan.setup.tokens));
}

std::string heading(const AblationPlan& plan, const ModelConfig& model, std::size_t documents) {
  return model.name + " · " + plan.setup.subject() + " · " + std::to_string(documents) + " × " +
         std::to_string(plan.setup.tokens) + " tokens";
}

std::vector<std::filesystem::path> figure_files(const std::filesystem::path& out, bool sweep) {
  std::vector<std::filesystem::path> files;
  for (const char* suffix : {"_ablation", "_filtering", "_chunks"})
    if (sweep || std::string_view(suffix) != "_chunks")
      for (const auto& path : figure_paths(out, suffix)) files.push_back(path);
  return files;
}

AblationTable run_passes(AblationForward& forward, const AblationPlan& plan, Run& run) {
  Progress progress("faedkv", plan.most_passes(run.documents().size()), run.quiet());
  return ablate(forward, plan, run.documents(), run.ranks(), run.journal(), [&](std::size_t done, std::size_t most) {
    progress.update(static_cast<double>(done), static_cast<double>(most));
  });
}

FaedkvFindings find(const AblationPlan& plan, const AblationTable& table, const KeptLosses& losses) {
  const AblationSums sums = table.sums(plan.grid.chunks);
  const PerplexitySum& kept = losses.kept.front();
  FaedkvFindings findings{.result = ablation_result(sums),
                          .kept = choose_chunks(plan, sums),
                          .races = {},
                          .passes = table.passes(),
                          .nll_kept = kept.mean(),
                          .nll_kept_error = kept.error()};
  if (kept.per_document.size() == 1) findings.result.nll_error = losses.base_error;
  findings.full_passes = plan.variants() * sums.base.size();
  if (plan.race) findings.races = judge_layers(plan, sums);
  return findings;
}

Json sweep_json(const AblationPlan& plan, const std::vector<PerplexitySum>& kept) {
  Json points = Json::array();
  for (std::size_t n = 0; n < kept.size(); ++n)
    points.push_back({{"chunks", plan.chunk_counts[n]},
                      {"ppl", finite_or_null(kept[n].perplexity())},
                      {"nll_mean", kept[n].mean()},
                      {"nll_error", kept[n].error()}});
  return points;
}

Json quality_json(const FaedkvPlan& plan, const FaedkvFindings& findings, const KeptLosses& losses) {
  Json quality{{"text", "calibration documents"},
               {"ppl_full", finite_or_null(std::exp(findings.result.nll_base))},
               {"nll_full", findings.result.nll_base},
               {"ppl", finite_or_null(std::exp(findings.nll_kept))},
               {"nll_mean", findings.nll_kept},
               {"nll_error", findings.nll_kept_error},
               {"keep", plan.keep}};
  if (losses.kept.size() > 1) quality["sweep"] = sweep_json(plan, losses.kept);
  return quality;
}

FaedkvFigures figures_of(const FaedkvPlan& plan, const FaedkvFindings& findings, const KeptLosses& losses,
                         const Run& run) {
  const std::size_t middle = plan.layers.size() / 2;
  FaedkvFigures figures{heading(plan, run.config(), run.documents().size()),
                        plan.layers,
                        findings.result,
                        {},
                        run.documents().front(),
                        plan.layers[middle],
                        gains_keeping(plan.grid, findings.kept[middle])};
  for (std::size_t n = 0; n < losses.kept.size(); ++n)
    figures.sweep.emplace_back(plan.chunk_counts[n], draw::drawn_exponential(losses.kept[n].mean()));
  return figures;
}

}  // namespace

void run_faedkv(Arguments arguments) {
  const auto options = faedkv_options().parse(arguments, std::cout);
  if (!options) return;
  if (has_budget(*options, kAblationOptions)) return run_budget("faedkv", *options);
  const std::filesystem::path out = options->text("out");
  Run run(*options);
  run.take_outputs({.main = out,
                    .others = figure_files(out, options->has("sweep")),
                    .kind = RunOutputs::Kind::kConfig,
                    .state = RunOutputs::State::kJournal});
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const FaedkvPlan plan = make_plan(run);
  run.load();
  run.print_estimate({.flops = ablation_flops(plan, run.config(), run.documents().size()),
                      .memory_bytes = ablation_memory(
                          run.config(), static_cast<double>(run.session().model->weight_bytes()), plan.setup.tokens),
                      .at_most = plan.race.has_value()});

  const auto ops = make_spectral_ops(run.backend());
  AblationForward forward(run.decoder(), *ops, plan.setup);
  const AblationTable table = run_passes(forward, plan, run);
  const KeptLosses losses = kept_losses(forward, plan, table, run.documents(), run.ranks());
  if (!run.is_root()) return;
  const FaedkvFindings findings = find(plan, table, losses);
  const Json config = make_config("faedkv", run.config(), run.model().sha256(), parameters_json(plan, findings),
                                  {{"ablation", ablation_json(plan, findings)}}, run.provenance(),
                                  quality_json(plan, findings, losses), {});
  run.finish(config, summary(plan, findings),
             [&] { return faedkv_charts(figures_of(plan, findings, losses, run), plan.setup, run.decoder(), *ops); });
}

}  // namespace kvs
