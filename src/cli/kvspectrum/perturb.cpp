// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "analyzers/perturbed_documents.h"
#include "calibrate/common/layer_options.h"
#include "cli/kvspectrum/commands.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/live_source.h"
#include "texts/wordnet.h"

namespace kvs::inline cli {
namespace {

constexpr std::size_t kSpareShare = 16;  // a perturbed version may lose 1/16 of a window

OptionTable perturb_options() {
  OptionTable table("kvspectrum perturb --model PATH --text PATH --out FILE [options]",
                    "Measures how much a few synonyms change the low and the high frequencies of keys and values. Runs "
                    "each document twice: unchanged, and with some words replaced.",
                    {"kvspectrum perturb --model SmolLM2.gguf --text book.txt --documents 100 --out perturb.json"});
  table.value("out", "FILE", "the JSON result; the figure is written next to it")
      .required()
      .value("share", "SHARE", "share of the words to replace by synonyms", "0.01")
      .value("compared-tokens", "N", "length to which both versions are cut (default: 15/16 of --window)")
      .formerly("tokens")
      .from(4)
      .value("layers", "LAYERS", "layers to compare, such as 0,14-16", "all")
      .value("wordnet", "DIR", "folder of WordNet's database", WordNet::kDebianFolder);
  add_model_run_options(table, true);
  add_seed_option(table, "seed of the random choice of words and synonyms");
  table.check([](const Options& options) {
    refuse_options(options, {"tokens-file"}, "words to replace");
    if (options.has("compared-tokens"))
      (void)options.integer("compared-tokens", 4, options.integer("window", 4, kMaxTokens));
  });
  return table;
}

PerturbationPlan make_plan(const Run& run) {
  const Options& options = run.options();
  const std::size_t window = run.tokens();
  PerturbationPlan plan;
  plan.share = options.share("share");
  plan.tokens = window - window / kSpareShare;
  if (options.has("compared-tokens")) plan.tokens = options.count("compared-tokens", 4, window);
  plan.bos = run.corpus().bos;
  plan.seed = static_cast<std::uint64_t>(run.settings().seed);
  return plan;
}

PerturbedVersions make_versions(const Run& run, const PerturbationPlan& plan, const WordNet& wordnet) {
  const auto tokenizer = run.model().load_tokenizer();
  PerturbedVersions versions = perturbed_versions(*tokenizer, run.documents(), plan,
                                                  [&](std::string_view word) { return wordnet.synonyms(word); });
  if (versions.left_out > 0)
    run.note("left out " + std::to_string(versions.left_out) + " of " + std::to_string(run.documents().size()) +
             " documents: no word to replace, or fewer than " + std::to_string(plan.tokens) + " tokens afterwards");
  return versions;
}

void run_perturb(const Options& options) {
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs({.main = out, .others = figure_paths(out, ""), .state = RunOutputs::State::kJournal});
  const WordNet wordnet(options.text("wordnet"));
  run.open_model();
  run.read_texts();
  run.identity()["wordnet_sha256"] = wordnet.sha256();
  if (run.is_finished()) return;
  const PerturbationPlan plan = make_plan(run);
  const auto layers = chosen_layers(options, run.config());
  PerturbedVersions versions = make_versions(run, plan, wordnet);
  run.load();
  const std::size_t documents = versions.documents.size();
  run.print_estimate(
      {.flops = 2 * static_cast<double>(documents) * forward_flops(run.config(), static_cast<double>(plan.tokens)),
       .memory_bytes = session_memory(run.session(), plan.tokens)});
  const auto ops = run.backend().make_spectral_ops();
  LiveSource original(run.decoder(), versions.original), perturbed(run.decoder(), versions.perturbed);
  Progress progress("perturb", documents, run.quiet());
  compare_documents(*ops, original, perturbed, layers, *run.journal(), progress.counter(), versions.documents);
  const PerturbationResult result =
      perturbation_result({.head = run.result_head("kvspectrum-perturbation", plan.tokens),
                           .wordnet_sha256 = wordnet.sha256(),
                           .seed = run.settings().seed,
                           .share = plan.share,
                           .window = run.tokens(),
                           .tokens = plan.tokens,
                           .layers = layers,
                           .documents = {.left_out = versions.left_out}},
                          versions.documents);
  run.finish(to_json(result), to_text(result), [&] {
    return RunFigures{{"", perturbation_chart(result.heading(), result)}};
  });
}

}  // namespace

const Subcommand kPerturbCommand{"perturb", perturb_options, run_perturb};

}  // namespace kvs::inline cli
