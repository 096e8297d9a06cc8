// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "calibrate/elitekv/charts.h"
#include "calibrate/elitekv/factor_file.h"
#include "calibrate/elitekv/memory.h"
#include "calibrate/elitekv/report.h"
#include "calibrate/elitekv/sets.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "run/capture_input.h"
#include "run/progress.h"
#include "states/capture_run.h"
#include "states/in_memory_source.h"
#include "states/live_source.h"
#include "states/second_moment_source.h"

namespace kvs::inline cli {
namespace {

constexpr std::size_t kHeldBytes = std::size_t{2} << 30;  // limit for q_pre and k_pre kept between passes with p = 1

/// The inputs of the command: a model, a capture, or both.
struct EliteInput : StateInput {
  std::vector<std::vector<std::int32_t>> documents;  // of the texts; held-out documents are last
  std::unique_ptr<StateSource> held = nullptr;       // states that are kept in memory between passes
};

EliteInput open_input(Run& run, const Options& options) {
  EliteInput input;
  static_cast<StateInput&>(input) = open_states(run, planned_whitening(options) != Whitening::kOff);
  for (const StateKind kind : {StateKind::kQPre, StateKind::kKPre})
    if (input.reader && !input.reader->header().states.contains(kind))
      throw Error(ErrorCode::kInput, options.text("capture"),
                  "found no " + std::string(name_of(kind)) + ", expected q_pre and k_pre");
  if (has_factors(options)) add_decompositions(run.identity());
  return input;
}

/// Computes the second moments of x in a separate live pass, because a capture does not contain x.
std::vector<double> live_moments(const EliteInput& input, Run& run, const std::vector<std::size_t>& layers,
                                 CalibrationOps& ops) {
  run.load_weights();
  LiveSource live(run.decoder(), input.documents);
  Progress progress("elitekv: whitening", live.documents(), run.quiet());
  return second_moments(live, ops, layers, input.config.d_model, progress.counter());
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
                           progress.counter());
}

Estimate estimate_of(const EliteInput& input, const ElitePlan& plan, const Run& run) {
  const EliteConfig& config = plan.config;
  const auto documents = static_cast<double>(input.source->documents());
  const auto tokens = static_cast<double>(input.source->tokens());
  const DType type = input.source->backend().compute_type();
  Estimate estimate{.flops = distance_flops(plan.search, documents, tokens)};
  estimate.memory_bytes = elite_memory(input.config, config, type, plan.held_out > 0);
  if (plan.by_layer)
    estimate.memory_bytes +=
        by_layer_memory(input.config, config, *plan.by_layer, input.source->documents(), input.source->tokens());
  if (input.reader) {
    const double passes = plan.search.norm == 1 ? static_cast<double>(plan.search.count) : 1;
    estimate.read_bytes = passes * static_cast<double>(capture_bytes(input.reader->header()));
    estimate.memory_bytes += captured_memory(input.reader->header());
    if (config.whitening != Whitening::kOff)  // a separate pass after the states have been read
      estimate.memory_bytes += pass_memory(input.config, loaded_weight_bytes(run.model(), type), run.tokens());
  } else {
    estimate.flops += 1.2 * documents * forward_flops(input.config, tokens);
    estimate.memory_bytes += session_memory(run.session(), input.source->tokens());
  }
  return estimate;
}

/// Returns the provenance of the chosen sets: the texts, or the capture.
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
  if (options.has("cache-ratio")) std::ranges::copy(figure_paths(out, "_trials"), std::back_inserter(outputs.others));
  return outputs;
}

/// Runs the search, and chooses sizes if there is a choice. Ranks share the search.
void find_sets(const EliteInput& input, ElitePlan& plan, EliteSearch& search, CalibrationOps& ops, Run& run) {
  const std::size_t last = search.units() - plan.held_out;
  {
    Progress progress("elitekv: search", last, run.quiet());
    share_search(search, last, run.saved_state(), run.ranks(), run.checkpoint(), progress.counter());
  }
  if (!run.is_root()) return;
  if (plan.held_out > 0) {
    PhaseProgress progress(run.quiet());
    choose_sizes(plan, run.model(), run.decoder(), search, ops, input.documents, progress.counter());
    while (search.done() < search.units())
      search.step();  // not saved: a resumed run would choose sizes on documents that it fitted
  }
  take_picks(plan, search);
}

void check_capture(const Options& options) {
  if (!options.has("capture")) return;
  if (!options.has("model")) refuse_options(options, {"weights-budget"}, "--capture without --model");
  if (options.text("outputs") == "fitted") refuse_options(options, {"outputs"}, "--capture");
  if (options.has("rank"))
    require_partner(options, {"rank"}, {"model"});  // factors are computed from the model's weights
  if (planned_whitening(options) != Whitening::kOff)
    require_partner(options, {"whiten"}, {"text", "tokens-file"});
  else
    refuse_options(options, kTextOptions, "--capture without --whiten");
}

OptionTable elitekv_table() {
  OptionTable table(
      "kvcalibrate elitekv --model PATH --text PATH --elite r --out FILE [options]",
      "Chooses the RoPE chunks that each head needs (RoPElite). With --rank: also factorises the rest into low-rank "
      "factors (J-LRD).",
      {"kvcalibrate elitekv --model SmolLM2.gguf --text book.txt --window 512 --documents 16 --elite 16 "
       "--rank 192 --out elitekv.json",
       "kvcalibrate elitekv --capture book.h5 --elite 8 --norm 1 --granularity query-head --out elite.json"});
  add_elite_options(table);
  add_capture_options(table);
  add_model_run_options(table, true);
  table.check(check_elite_options).check(check_capture);
  return table;
}

void run_elitekv(const Options& options) {
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs(outputs_of(options));
  EliteInput input = open_input(run, options);
  if (run.is_finished()) return;
  ElitePlan plan = elite_plan(options, input.config, input.layers, run.corpus().documents.size());
  read_sinks(plan.search.rules, plan.search.geometry.layers, input.config, run.has_model() ? &run.model() : nullptr);
  for (const std::string& note : plan.notes) run.note(note);
  Corpus corpus = run.corpus();
  hold_out(corpus, plan.held_out);
  input.documents = tokens_of(corpus);
  input.open_source(run, input.documents);
  if (input.reader)
    run.start_on(*input.backend);
  else if (plan.search.norm == 1)
    input.held = std::make_unique<InMemorySource>(*input.source, kHeldBytes);
  print_estimate(estimate_of(input, plan, run), input.source->backend(), run.settings());
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
  run.write(outputs, config, [&] {
    return elite_figures(found, input.config, input.source->documents(), plan.held_out, input.source->tokens());
  });
  run.print(config, elite_summary(found, input.config));
}

}  // namespace

const Subcommand kElitekvCommand{"elitekv", elitekv_table, run_elitekv, true};

}  // namespace kvs::inline cli
