#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "calibrate/elitekv/charts.h"
#include "calibrate/elitekv/factor_file.h"
#include "calibrate/elitekv/memory.h"
#include "calibrate/elitekv/ratio.h"
#include "calibrate/elitekv/report.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/elite_input.h"
#include "cli/kvcalibrate/elite_plan.h"
#include "run/capture_input.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/capture_run.h"
#include "states/live_source.h"
#include "states/second_moment_source.h"

namespace kvs {
namespace {

/// Units up to the `last` one, pass by pass: ranks share a pass's documents, and rank 0 has the sums. The others get
/// them for as long as passes follow.
void run_search(EliteSearch& search, std::size_t last, Run& run) {
  Progress progress("elitekv: search", last, run.quiet());
  const auto state = [&] {
    UnitResult words{{{"done", search.done()}, {"extra", search.extra()}}};
    for (const std::span<const double> sum : search.sums()) words.sums.emplace_back(sum.begin(), sum.end());
    return words;
  };
  while (search.done() < last) {
    search.begin_pass();
    const std::size_t documents = search.documents(), pass = search.done() / documents * documents,
                      end = std::min(last, pass + documents);
    // Where passes repeat, a rank may still hold a document's states.
    run.ranks().share(
        {.first = search.done() - pass, .last = end - pass, .bound = search.units() > documents},
        [&](std::size_t document) {
          return UnitResult{Json(), search.measure(pass + document)};
        },
        [&](std::size_t, const UnitResult& document) {
          search.add(document.sums);
          progress.update(static_cast<double>(search.done()));
          if (run.checkpoint().due()) run.checkpoint().save(search.done(), search.sums(), search.extra());
        });
    if (end == last) return;
    if (run.ranks().alone()) continue;
    UnitResult told = run.ranks().broadcast(run.is_root() ? state() : UnitResult());
    if (!run.is_root())
      search.restore({told.record.at("done").get<std::uint64_t>(), std::move(told.sums), told.record.at("extra")});
  }
}

/// Goes on from what a run before has saved, on all ranks.
void go_on(EliteSearch& search, Run& run) {
  UnitResult saved;
  if (auto state = run.saved_state())
    saved = {{{"done", state->documents}, {"extra", state->extra}}, std::move(state->sums)};
  saved = run.ranks().broadcast(std::move(saved));
  if (!saved.record.is_null())
    search.restore({saved.record.at("done").get<std::uint64_t>(), std::move(saved.sums), saved.record.at("extra")});
}

/// Second moments of x from a live pass of their own: with --capture the states carry no x.
std::vector<double> live_moments(const EliteInput& input, Run& run, const std::vector<std::size_t>& layers,
                                 CalibrationOps& ops) {
  run.load_weights();
  LiveSource live(run.decoder(), input.documents);
  Progress progress("elitekv: whitening", live.documents(), run.quiet());
  return second_moments(live, ops, layers, input.config.d_model, progress.counter());
}

/// Chooses sizes for what the search has seen, by the last `held_out` documents: tries what --ratio leaves, then lets
/// layers trade, which is measured on every second document before those.
void choose(const EliteInput& input, const Run& run, const EliteSearch& search, CalibrationOps& ops,
            std::size_t held_out, EliteConfig& config) {
  const Options& options = run.options();
  const auto& documents = input.documents;
  const std::size_t fitted = documents.size() - held_out;
  const auto held = std::span(documents).subspan(fitted);
  const FactorInput factors{run.model(), ops, search.moments(), fitted * held.front().size(), search.attention()};
  if (options.has("ratio")) {
    const auto tried = candidates(options, input.config);
    Progress progress("elitekv: pairs", tried.size(), run.quiet());
    choose_allocation(factors, run.decoder(), search, tried, held, config, progress.counter());
  }
  const auto plan = by_layer_plan(options, input.config);
  if (!plan) return;
  std::vector<std::vector<std::int32_t>> measured;
  for (std::size_t n = 0; n < fitted; n += 2) measured.push_back(documents[n]);
  PhaseProgress progress(run.quiet());
  allocate_by_layer(factors, run.decoder(), search, *plan, {measured, held}, config,
                    [&](std::size_t done, std::size_t most) { progress.update("layers", done, most); });
}

ConfigFile write_factors(const EliteInput& input, Run& run, const EliteSearch& search, CalibrationOps& ops,
                         const std::filesystem::path& file, OutputSet& outputs, EliteConfig& config) {
  std::vector<double> moments;
  const bool whitened = config.whitening != Whitening::kOff;
  if (whitened && input.reader) moments = live_moments(input, run, config.layers, ops);
  FactorInput factors{.source = run.model(),
                      .ops = ops,
                      .moments = moments.empty() ? search.moments() : std::span<const double>(moments),
                      .tokens = run.provenance().tokens,
                      .attention = search.attention()};
  if (whitened && factors.tokens < input.config.d_model)
    run.note(std::to_string(factors.tokens) + " tokens are fewer than d_model = " +
             std::to_string(input.config.d_model) + "; the whitening leans on its ridge");
  PhaseProgress progress(run.quiet());
  return write_factor_file(factors, {run.session().decoder.get(), input.documents}, file, outputs, config,
                           [&](std::string_view step, std::size_t done, std::size_t total) {
                             progress.update(std::string(step), done, total);
                           });
}

/// The first-power search, in FLOPs at the rate of products: each pass takes every pair of tokens, head and chunk.
double distance_flops(const EliteSearchPlan& plan, double documents, double tokens) {
  constexpr double kPerPairAndChunk = 60;  // measured on the CPU: sine-cosine products and a sum of magnitudes
  if (plan.norm != 1) return 0;
  const auto cells =
      static_cast<double>(plan.geometry.layers.size() * plan.geometry.query_heads * plan.geometry.chunks);
  return documents * static_cast<double>(plan.count) * cells * tokens * tokens / 2 * kPerPairAndChunk;
}

Estimate estimate_of(const EliteInput& input, const EliteSearchPlan& plan, const EliteConfig& config, bool tried,
                     const Run& run) {
  const auto documents = static_cast<double>(input.source->documents());
  const auto tokens = static_cast<double>(input.source->tokens());
  const DType type = input.source->backend().compute_type();
  Estimate estimate{.flops = distance_flops(plan, documents, tokens)};
  estimate.memory_bytes = elite_memory(input.config, config, type, tried);
  if (const auto layers = by_layer_plan(run.options(), input.config))
    estimate.memory_bytes +=
        by_layer_memory(input.config, config, *layers, input.source->documents(), input.source->tokens());
  if (input.reader) {
    const double passes = plan.norm == 1 ? static_cast<double>(plan.count) : 1;
    estimate.read_bytes = passes * static_cast<double>(capture_bytes(input.reader->header()));
    estimate.memory_bytes += captured_memory(input.reader->header());
    if (config.whitening != Whitening::kOff)  // a pass of its own, once the states have been read
      estimate.memory_bytes += pass_memory(input.config, loaded_weight_bytes(run.model(), type), run.tokens());
  } else {
    estimate.flops += 1.2 * documents * forward_flops(input.config, tokens);
    estimate.memory_bytes += session_memory(run.session(), input.source->tokens());
  }
  return estimate;
}

/// What the sets were chosen by: the texts, or the capture.
Provenance elite_provenance(const EliteInput& input, const Run& run) {
  Provenance record = run.provenance();
  if (!input.reader) return record;
  record.documents = input.source->documents();
  record.window = input.source->tokens();
  record.tokens = record.documents * input.source->tokens();
  record.inputs["capture_sha256"] = run.identity().at("capture_sha256");
  const Json texts = texts_of_capture(run.options(), *input.reader);
  record.bos = texts.contains("bos") ? std::optional(texts.at("bos")) : std::nullopt;
  if (texts.contains("tokenizer_sha256")) record.inputs["tokenizer_sha256"] = texts.at("tokenizer_sha256");
  return record;
}

RunOutputs outputs_of(const Options& options) {
  const std::filesystem::path out = options.text("out");
  RunOutputs outputs{.main = out,
                     .others = figure_paths(out, "_elite"),
                     .kind = RunOutputs::Kind::kConfig,
                     .state = RunOutputs::State::kCheckpoint};
  if (has_factors(options)) outputs.others.push_back(sibling_path(out, ".safetensors"));
  if (options.has("ratio")) std::ranges::copy(figure_paths(out, "_trials"), std::back_inserter(outputs.others));
  return outputs;
}

/// What is searched, and what the config will say of it.
struct ElitePlan {
  EliteSearchPlan search;
  EliteConfig config;
  std::size_t held_out = 0;  // documents
};

ElitePlan make_plan(const EliteInput& input, const Run& run) {
  const Options& options = run.options();
  ElitePlan plan;
  plan.search = search_plan(options, input, static_cast<int>(options.integer("norm", 1, 2)));
  by_layer_plan(options, input.config);  // refuses before the search
  plan.config = planned_config(options, plan.search, input.config, run.quiet());
  if (plan.config.rank) plan.config.whitening = planned_whitening(options);
  if (plan.config.whitening != Whitening::kOff && !input.reader) plan.search.d_model = input.config.d_model;
  plan.held_out = held_out_documents(options, run.corpus());
  return plan;
}

/// Searches, and chooses sizes where there is a choice; ranks share the search.
void find_sets(const EliteInput& input, ElitePlan& plan, EliteSearch& search, CalibrationOps& ops, Run& run) {
  go_on(search, run);
  run_search(search, search.units() - plan.held_out, run);
  if (!run.is_root()) return;
  if (plan.held_out > 0) {
    choose(input, run, search, ops, plan.held_out, plan.config);
    while (search.done() < search.units()) search.step();  // not saved: another run would choose by what it fitted
  }
  EliteConfig& found = plan.config;
  found.picks = search.picks(found.r);
  for (std::size_t n = 0; n < found.by_layer.size(); ++n) found.picks[n] = search.picks(found.by_layer[n].r)[n];
}

RunFigures figures_of(const EliteInput& input, const EliteConfig& found, std::size_t held_out) {
  const std::size_t searched = input.source->documents(), tokens = input.source->tokens();
  RunFigures figures{{"_elite", elite_chart(elite_map(found, input.config, searched, tokens))}};
  if (!found.trials.empty())
    figures.push_back({"_trials", elite_sweep_chart(elite_sweep(found, input.config, held_out, tokens))});
  return figures;
}

}  // namespace

void run_elitekv(Arguments arguments) {
  const auto options = elitekv_options().parse(arguments, std::cout);
  if (!options) return;
  const std::filesystem::path out = options->text("out");
  Run run(*options);
  run.take_outputs(outputs_of(*options));
  EliteInput input = open_elite_input(run, planned_whitening(*options) != Whitening::kOff);
  if (run.is_finished()) return;
  ElitePlan plan = make_plan(input, run);
  Corpus corpus = run.corpus();
  hold_out(corpus, plan.held_out);
  input.documents = tokens_of(corpus);
  start_elite_source(input, run, plan.search.norm);
  print_estimate(estimate_of(input, plan.search, plan.config, plan.held_out > 0, run), input.source->backend(),
                 run.settings());
  const auto ops = make_calibration_ops(input.source->backend());
  EliteSearch search(plan.search, *ops, *input.source, input.held ? *input.held : *input.source);
  find_sets(input, plan, search, *ops, run);
  if (!run.is_root()) return;
  EliteConfig& found = plan.config;
  OutputSet outputs;
  std::vector<ConfigFile> files;
  if (found.rank)
    files.push_back(write_factors(input, run, search, *ops, sibling_path(out, ".safetensors"), outputs, found));
  const Json config = make_config("elitekv", input.config, input.model_sha256, elite_parameters(found),
                                  elite_calibration(found), elite_provenance(input, run), Json::object(), files);
  run.write(outputs, config, [&] { return figures_of(input, found, plan.held_out); });
  run.print(config, elite_summary(found, input.config));
}

}  // namespace kvs
