#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/kvcalibrate/budget.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/faedkv_figures.h"
#include "cli/kvcalibrate/faedkv_plan.h"
#include "draw/axis.h"
#include "io/finite.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs {
namespace {

/// The passes that are made at most; each document's base, and once more with every layer cut down to its best chunks.
double ablation_flops(const AblationPlan& plan, const ModelConfig& model, std::size_t documents) {
  const double scored = static_cast<double>(plan.setup.tokens - plan.setup.first_scored());
  const auto past = static_cast<double>(plan.setup.first_scored());
  double layers = 0;
  for (const std::size_t layer : plan.layers)
    layers += static_cast<double>(model.layers - layer) * layer_flops(model, scored, past) + head_flops(model, scored);
  return static_cast<double>(plan.max_passes(documents)) * layers / static_cast<double>(plan.layers.size()) +
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
  Progress progress("faedkv", plan.max_passes(run.documents().size()), run.quiet());
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
  if (asks_for_budget(*options)) return run_budget("faedkv", *options);
  const std::filesystem::path out = options->text("out");
  Run run(*options);
  run.take_outputs({.main = out,
                    .others = figure_files(out, options->has("sweep")),
                    .kind = RunOutputs::Kind::kConfig,
                    .state = RunOutputs::State::kJournal});
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const FaedkvPlan plan = faedkv_plan(*options, run.config().layers, run.documents().size(), run.tokens());
  if (plan.race && run.documents().size() == 1) run.note("one document has no interval, so no chunk can be decided");
  run.load();
  run.print_estimate({.flops = ablation_flops(plan, run.config(), run.documents().size()),
                      .memory_bytes = ablation_memory(
                          run.config(), static_cast<double>(run.session().model->weight_bytes()), plan.setup.tokens),
                      .at_most = plan.race.has_value()});

  const auto ops = run.backend().make_spectral_ops();
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
