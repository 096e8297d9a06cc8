#include <filesystem>
#include <iostream>

#include "calibrate/faedkv/figures.h"
#include "calibrate/faedkv/options.h"
#include "cli/kvcalibrate/commands.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs::inline cli {
namespace {

/// Returns the FLOPs of the maximum number of passes, plus two passes for each document: the unchanged model, and all
/// layers cut to their best chunks.
double ablation_flops(const AblationPlan& plan, const ModelConfig& model, std::size_t documents) {
  const double scored = static_cast<double>(plan.setup.tokens - plan.setup.first_scored());
  const auto past = static_cast<double>(plan.setup.first_scored());
  double layers = 0;
  for (const std::size_t layer : plan.layers)
    layers +=
        static_cast<double>(model.layers() - layer) * layer_flops(model, scored, past) + head_flops(model, scored);
  return static_cast<double>(plan.max_passes(documents)) * layers / static_cast<double>(plan.layers.size()) +
         static_cast<double>(2 * documents) * forward_flops(model, static_cast<double>(plan.setup.tokens));
}

std::vector<std::filesystem::path> ablation_figure_paths(const std::filesystem::path& out, bool sweep) {
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

OptionTable faedkv_table() {
  OptionTable table(
      "kvcalibrate faedkv --model PATH --text PATH --out FILE [options]",
      "Ablates each chunk of each layer's spectrum and keeps, per layer, those whose loss hurts most. With --budget: "
      "chooses recent tokens and chunks, of keys and values apart, for so many bytes; with --per-layer-rounds for each "
      "layer.",
      {"kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --documents 8 --out faedkv.json",
       "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --protocol in-place --chunks 8 "
       "--sweep 4,8,16,22 --dtype bf16 --out faedkv.json",
       "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --documents 16 --passes 5000 "
       "--out faedkv.json",
       "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --budget 50% --per-layer-rounds 1 "
       "--out faedkv.json"});
  add_faedkv_options(table);
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  add_seed_option(table, "with --passes, --confidence or --budget: of the order of documents");
  return table;
}

}  // namespace

void run_faedkv(Arguments arguments) {
  const auto options = faedkv_table().parse(arguments, std::cout);
  if (!options) return;
  if (asks_for_budget(*options)) return run_budget("faedkv", *options);
  const std::filesystem::path out = options->text("out");
  Run run(*options);
  run.take_outputs({.main = out,
                    .others = ablation_figure_paths(out, options->has("sweep")),
                    .kind = RunOutputs::Kind::kConfig,
                    .state = RunOutputs::State::kJournal});
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const FaedkvPlan plan = faedkv_plan(*options, run.config().layers(), run.documents().size(), run.tokens());
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
  const FaedkvResult found = faedkv_result(plan, table, losses);
  const Json config =
      make_config("faedkv", run.config(), run.model().sha256(), faedkv_parameters(plan, found),
                  {{"ablation", to_json(found.ablation)}}, run.provenance(), to_json(found.quality), {});
  run.finish(config, to_text(found), [&] { return faedkv_figures(plan, found, run.documents(), run.decoder(), *ops); });
}

}  // namespace kvs::inline cli
