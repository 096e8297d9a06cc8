// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "calibrate/common/layer_options.h"
#include "calibrate/faedkv/figures.h"
#include "calibrate/faedkv/options.h"
#include "cli/kvcalibrate/commands.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs::inline cli {
namespace {

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
  OptionTable table("kvcalibrate faedkv --model PATH --text PATH --out FILE [options]",
                    "Ablates the spectral chunks of every layer and keeps those whose removal raises the loss most. "
                    "With --budget: chooses recent tokens, chunks of keys and chunks of values for a byte budget. With "
                    "--per-layer-rounds: chooses them for each layer.",
                    {"kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --documents 8 --out faedkv.json",
                     "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --protocol in-place --chunks 8 "
                     "--sweep 4,8,16,22 --dtype bf16 --out faedkv.json",
                     "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --documents 16 --passes 5000 "
                     "--out faedkv.json",
                     "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --budget 50% --per-layer-rounds 1 "
                     "--out faedkv.json"});
  add_faedkv_options(table);
  add_model_run_options(table, true);
  add_seed_option(table, "with --passes, --confidence or --budget: seed of the random order of documents");
  return table;
}

void run_faedkv(const Options& options) {
  if (asks_for_budget(options)) return run_budget("faedkv", options);
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs({.main = out,
                    .others = ablation_figure_paths(out, options.has("sweep")),
                    .kind = RunOutputs::Kind::kConfig,
                    .state = RunOutputs::State::kJournal});
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const FaedkvPlan plan =
      faedkv_plan(options, chosen_layers(options, run.config()), run.documents().size(), run.tokens());
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

}  // namespace

const Subcommand kFaedkvCommand{"faedkv", faedkv_table, run_faedkv, true};

}  // namespace kvs::inline cli
