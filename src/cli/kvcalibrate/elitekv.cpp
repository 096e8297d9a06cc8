#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "calibrate/elitekv/charts.h"
#include "calibrate/elitekv/factor_file.h"
#include "calibrate/elitekv/memory.h"
#include "calibrate/elitekv/ratio.h"
#include "calibrate/elitekv/report.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/elite_input.h"
#include "cli/kvcalibrate/elite_plan.h"
#include "core/error.h"
#include "io/file.h"
#include "states/capture_run.h"
#include "states/live_source.h"
#include "states/second_moment_source.h"

namespace kvs {
namespace {

/// Units up to the `last` one, pass by pass: ranks share a pass's documents, and rank 0 has the sums. The others get
/// them for as long as passes follow.
/// @param checkpoint  saves them now and then; nullptr: nothing is saved
void run_search(EliteSearch& search, std::size_t last, Checkpoint* checkpoint, const RunOptions& run) {
  Progress progress("elitekv: search", static_cast<double>(last), run.quiet);
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
    run.ranks->share(
        {.first = search.done() - pass, .last = end - pass, .bound = search.units() > documents},
        [&](std::size_t document) {
          return UnitResult{Json(), search.measure(pass + document)};
        },
        [&](std::size_t, const UnitResult& document) {
          search.add(document.sums);
          progress.update(static_cast<double>(search.done()));
          if (checkpoint != nullptr && checkpoint->due())
            checkpoint->save(search.done(), search.sums(), search.extra());
        });
    if (end == last) return;
    if (run.ranks->alone()) continue;
    UnitResult told = run.ranks->tell(run.leads() ? state() : UnitResult());
    if (!run.leads())
      search.restore({told.record.at("done").get<std::uint64_t>(), std::move(told.sums), told.record.at("extra")});
  }
}

/// Goes on from what a run before has saved, on all ranks.
void go_on(EliteSearch& search, const Checkpoint& checkpoint, const std::filesystem::path& out, const RunOptions& run) {
  UnitResult saved;
  if (run.leads()) {
    if (auto state = load_checkpoint(checkpoint, out, run))
      saved = {{{"done", state->documents}, {"extra", state->extra}}, std::move(state->sums)};
  }
  saved = run.ranks->tell(std::move(saved));
  if (!saved.record.is_null())
    search.restore({saved.record.at("done").get<std::uint64_t>(), std::move(saved.sums), saved.record.at("extra")});
}

/// Second moments of x from a live pass of their own: with --capture the states carry no x.
std::vector<double> live_moments(EliteInput& input, const Options& options, const RunOptions& run,
                                 const std::vector<std::size_t>& layers, CalibrationOps& ops) {
  input.session = load_model(std::move(input.model), options, run);
  LiveSource live(*input.session.decoder, tokens_of(input.corpus));
  Progress progress("elitekv: whitening", static_cast<double>(live.documents()), run.quiet);
  return second_moments(live, ops, layers, input.config.d_model,
                        [&](std::size_t done) { progress.update(static_cast<double>(done)); });
}

/// Chooses sizes for what the search has seen, by the last `held_out` documents: tries what --ratio leaves, then lets
/// layers trade, which is measured on every second document before those.
void choose(const EliteInput& input, const Options& options, const RunOptions& run, const EliteSearch& search,
            CalibrationOps& ops, std::size_t held_out, EliteConfig& config) {
  const auto documents = tokens_of(input.corpus);
  const std::size_t fitted = documents.size() - held_out;
  const auto held = std::span(documents).subspan(fitted);
  Decoder& decoder = *input.session.decoder;
  const FactorInput factors{*input.files(), ops, search.moments(), fitted * held.front().size(), search.attention()};
  if (options.has("ratio")) {
    const auto tried = candidates(options, input.config);
    Progress progress("elitekv: pairs", static_cast<double>(tried.size()), run.quiet);
    choose_allocation(factors, decoder, search, tried, held, config,
                      [&](std::size_t done) { progress.update(static_cast<double>(done)); });
  }
  const auto plan = by_layer_plan(options, input.config);
  if (!plan) return;
  std::vector<std::vector<std::int32_t>> measured;
  for (std::size_t n = 0; n < fitted; n += 2) measured.push_back(documents[n]);
  std::optional<Progress> progress;
  allocate_by_layer(factors, decoder, search, *plan, {measured, held}, config, [&](std::size_t done, std::size_t most) {
    if (!progress) progress.emplace("layers", static_cast<double>(most), run.quiet);
    progress->update(static_cast<double>(done));
  });
}

ConfigFile write_factors(EliteInput& input, const Options& options, const RunOptions& run, const EliteSearch& search,
                         CalibrationOps& ops, const std::filesystem::path& file, OutputSet& outputs,
                         EliteConfig& config) {
  std::vector<double> moments;
  const bool whitened = config.whitening != Whitening::kOff;
  if (whitened && input.reader) moments = live_moments(input, options, run, config.layers, ops);
  FactorInput factors{.source = *input.files(),
                      .ops = ops,
                      .moments = moments.empty() ? search.moments() : std::span<const double>(moments),
                      .tokens = provenance(options, run, input.corpus).tokens,
                      .attention = search.attention()};
  if (whitened && factors.tokens < input.config.d_model)
    remark("note: " + std::to_string(factors.tokens) + " tokens are fewer than d_model = " +
               std::to_string(input.config.d_model) + "; the whitening leans on its ridge",
           run.quiet);
  const auto documents = tokens_of(input.corpus);
  std::optional<Progress> progress;
  std::string_view current;
  return write_factor_file(factors, {input.session.decoder.get(), documents}, file, outputs, config,
                           [&](std::string_view step, std::size_t done, std::size_t total) {
                             if (step != current)
                               progress.emplace(std::string(step), static_cast<double>(total), run.quiet);
                             current = step;
                             progress->update(static_cast<double>(done));
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

void announce_search(const EliteInput& input, const Options& options, const EliteSearchPlan& plan,
                     const EliteConfig& config, bool tried, const RunOptions& run) {
  const auto documents = static_cast<double>(input.source->documents());
  const auto tokens = static_cast<double>(input.source->tokens());
  Estimate estimate{.flops = distance_flops(plan, documents, tokens)};
  Backend& backend = input.source->backend();
  estimate.memory_bytes = elite_memory(input.config, config, backend.compute_type(), tried);
  if (const auto layers = by_layer_plan(options, input.config))
    estimate.memory_bytes +=
        by_layer_memory(input.config, config, *layers, input.source->documents(), input.source->tokens());
  if (input.reader) {
    const double passes = plan.norm == 1 ? static_cast<double>(plan.count) : 1;
    estimate.read_bytes = passes * static_cast<double>(capture_bytes(input.reader->header()));
    estimate.memory_bytes += captured_memory(input.reader->header());
    if (config.whitening != Whitening::kOff)  // a pass of its own, once the states have been read
      estimate.memory_bytes += pass_memory(input.config, loaded_weight_bytes(*input.model, backend.compute_type()),
                                           input.corpus.documents.front().tokens.size());
  } else {
    estimate.flops += 1.2 * documents * forward_flops(input.config, tokens);
    estimate.memory_bytes += session_memory(input.session, input.source->tokens());
  }
  announce(estimate, backend, run);
}

/// What the sets were chosen by: the texts, or the capture.
Provenance elite_provenance(const EliteInput& input, const Options& options, const RunOptions& run) {
  Provenance record = provenance(options, run, input.corpus);
  if (!input.reader) return record;
  record.documents = input.source->documents();
  record.window = input.source->tokens();
  record.tokens = record.documents * input.source->tokens();
  record.inputs["capture_sha256"] = input.identity.at("capture_sha256");
  const Json texts = texts_of_capture(options, *input.reader);
  record.bos = texts.contains("bos") ? std::optional(texts.at("bos")) : std::nullopt;
  if (texts.contains("tokenizer_sha256")) record.inputs["tokenizer_sha256"] = texts.at("tokenizer_sha256");
  return record;
}

}  // namespace

void run_elitekv(Arguments arguments) {
  const auto options = elitekv_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const std::filesystem::path out = options->text("out"), factor_file = beside(out, ".safetensors");
  auto others = figure_paths(out, "_elite");
  if (has_factors(*options)) others.push_back(factor_file);
  if (options->has("ratio")) std::ranges::copy(figure_paths(out, "_trials"), std::back_inserter(others));
  check_outputs(out, others, *options, run);
  const OutputLock lock(out, run.lock, others);
  const int norm = static_cast<int>(options->integer("norm", 1, 2));
  const bool from_capture = options->has("capture");
  const Whitening whitening = planned_whitening(*options);

  EliteInput input = open_elite_input(*options, run, whitening != Whitening::kOff);
  if (is_finished(
          out, out, run,
          [&](const Json& config) { return is_of_run(config, "/calibration", *options, input.identity); },
          [&](const Json&) { return others; }))
    return print_result(run, read_config(out), out.string() + ": finished before\n");
  EliteSearchPlan plan = search_plan(*options, input, norm);
  by_layer_plan(*options, input.config);  // refuses before the search
  EliteConfig found = planned_config(*options, plan, input.config, run.quiet);
  if (found.rank) found.whitening = whitening;
  if (found.whitening != Whitening::kOff && !from_capture) plan.d_model = input.config.d_model;
  const std::size_t held_out = held_out_documents(*options, input.corpus);
  hold_out(input.corpus, held_out);
  start_elite_source(input, *options, run, norm);
  announce_search(input, *options, plan, found, held_out > 0, run);
  const auto ops = make_calibration_ops(input.source->backend());
  EliteSearch search(plan, *ops, *input.source, input.held ? *input.held : *input.source);
  require_agreement(run, input.identity, input.source->backend());
  Checkpoint checkpoint(out, input.identity);
  go_on(search, checkpoint, out, run);
  run_search(search, search.units() - held_out, &checkpoint, run);
  if (!run.leads()) return;
  if (held_out > 0) {
    choose(input, *options, run, search, *ops, held_out, found);
    while (search.done() < search.units()) search.step();  // not saved: another run would choose by what it fitted
  }
  found.picks = search.picks(found.r);
  for (std::size_t n = 0; n < found.by_layer.size(); ++n) found.picks[n] = search.picks(found.by_layer[n].r)[n];
  OutputSet outputs;
  std::vector<ConfigFile> files;
  if (found.rank) files.push_back(write_factors(input, *options, run, search, *ops, factor_file, outputs, found));
  const Provenance record = elite_provenance(input, *options, run);
  const Json config = make_config("elitekv", input.config, input.model_sha256, elite_parameters(found),
                                  elite_calibration(found), record, Json::object(), files);
  write_outputs(outputs, out, config, run, [&] {
    const std::size_t searched = input.source->documents(), tokens = input.source->tokens();
    RunFigures figures{{"_elite", elite_chart(elite_map(found, input.config, searched, tokens))}};
    if (!found.trials.empty())
      figures.push_back({"_trials", elite_sweep_chart(elite_sweep(found, input.config, held_out, tokens))});
    return figures;
  });
  checkpoint.remove();
  print_result(run, config, elite_summary(found, input.config));
}

}  // namespace kvs
