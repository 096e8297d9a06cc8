#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "calibrate/second_moment_source.h"
#include "capture/capture_run.h"
#include "capture/live_source.h"
#include "cli/common/estimate.h"
#include "cli/common/methods.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/elite_input.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "eval/elite_factors.h"
#include "eval/elite_report.h"
#include "eval/elite_search.h"
#include "export/elite_config.h"
#include "export/figure.h"
#include "export/figures/elite_map.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/safetensors_writer.h"
#include "io/staged_output.h"

namespace kvs {
namespace {

OptionTable elitekv_options() {
  OptionTable table(
      "kvcalibrate elitekv --model PATH --text PATH --elite r --out FILE [options]",
      "RoPElite: which RoPE chunks each head needs. With --rank also J-LRD: low-rank factors of the rest.",
      {"kvcalibrate elitekv --model SmolLM2.gguf --text book.txt --window 512 --documents 16 --elite 16 "
       "--rank 192 --out elitekv.json",
       "kvcalibrate elitekv --capture book.h5 --elite 8 --norm 1 --granularity query-head --out elite.json"});
  table.value("out", "FILE", "the config to write; factors and figure go beside it")
      .value("capture", "FILE", "search in a capture with q_pre and k_pre instead of --model and --text")
      .value("elite", "r", "chunks that stay rotated in each head")
      .value("norm", "1|2", "the score error's power: 2 in one pass, 1 (the public code's) one pass per pick", "2")
      .value("granularity", "kv-head|query-head", "query-head: analysis only on grouped-query models", "kv-head")
      .value("baseline", "uniform|contribution|high|low", "instead of a search")
      .value("disjoint", "on|off", "no two heads of a layer share a chunk", "off")
      .value("rank", "d_ckv", "also factorise to this rank (separate: the budget d_ck + d_cv)")
      .value("factorization", "joint|separate", "J-LRD or S-LRD", "joint")
      .value("whiten", "on|off", "weigh errors by the inputs seen in the text (default: on, with --capture off)")
      .value("split", "up|down|sqrt", "factor that takes the singular values", "up")
      .flag("allow-more-parameters", "no remark when the factors hold more parameters than what they replace")
      .flag("allow-incomplete", "use the committed documents of an unfinished capture")
      .flag("skip-corrupt", "leave out documents whose checksum does not match")
      .value("layers", "LIST", "such as 0,14-16", "all");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  return table;
}

EliteSearchPlan search_plan(const Options& options, const EliteInput& input, int norm) {
  static constexpr std::string_view kBaselines[] = {"uniform", "contribution", "high", "low"};
  EliteSearchPlan plan;
  const ModelConfig& config = input.config;
  require_method(MethodId::kRopelite, config);
  plan.geometry = {
      input.reader ? captured_layers(options, input.reader->header().layers) : options.indices("layers", config.layers),
      config.query_heads, config.kv_heads, config.chunks()};
  plan.norm = norm;
  plan.granularity = options.text("granularity") == "kv-head" ? Granularity::kKvHead : Granularity::kQueryHead;
  plan.count = static_cast<std::size_t>(options.integer("elite", 1, static_cast<std::int64_t>(config.chunks())));
  if (options.has("baseline"))
    plan.baseline =
        static_cast<EliteBaseline>(std::ranges::find(kBaselines, options.choice("baseline", kBaselines)) - kBaselines);
  plan.disjoint = options.on_off("disjoint");
  if (plan.disjoint) require_method(MethodId::kDisjoint, config);
  if (plan.disjoint && (norm == 1 || plan.baseline || plan.granularity == Granularity::kQueryHead))
    throw Error(ErrorCode::kUsage, "--disjoint", "on needs --norm 2, --granularity kv-head and no --baseline");
  if (plan.disjoint && plan.count * config.kv_heads > config.chunks())
    throw Error(ErrorCode::kUsage, "--elite",
                "found " + std::to_string(plan.count) + " with --disjoint on, expected at most " +
                    std::to_string(config.chunks() / config.kv_heads));
  return plan;
}

/// What the options say of factors: --rank checked against full rank and the no-extra-parameters bound. No rank without
/// --rank or where a query head's own rows cannot be.
void plan_factors(const Options& options, const ModelConfig& model, bool quiet, EliteConfig& config) {
  static constexpr std::string_view kSplits[] = {"up", "down", "sqrt"};
  config.joint = options.text("factorization") == "joint";
  config.split = static_cast<SingularSplit>(std::ranges::find(kSplits, options.choice("split", kSplits)) - kSplits);
  if (!options.has("rank")) return;
  require_method(MethodId::kFactors, model);
  if (!config.joint && 2 * config.r == model.head_dim)
    throw Error(
        ErrorCode::kUsage, "--factorization",
        "found separate with every channel of a key elite, expected joint: no row of the keys is left to factorise");
  const auto limit = static_cast<std::int64_t>(full_rank(model, config.r, config.joint));
  const auto rank = static_cast<std::size_t>(options.integer("rank", config.joint ? 1 : 2, limit));
  if (config.granularity == Granularity::kQueryHead && model.group() > 1) {
    remark(
        "note: elite sets per query head are analysis only on a model whose query heads share keys; no factors are "
        "made",
        quiet);
    return;
  }
  config.rank = rank;
  const std::size_t bound = no_extra_parameters_rank(model.d_model, model.kv_heads, model.head_dim, config.r);
  if (rank > bound && !options.flag("allow-more-parameters"))
    remark("note: rank " + std::to_string(rank) + " makes factors with more parameters than what they replace (bound " +
               std::to_string(bound) + ")",
           quiet);
}

/// What the options say; picks and factors are still to come.
EliteConfig planned_config(const Options& options, const EliteSearchPlan& plan, const ModelConfig& model, bool quiet) {
  EliteConfig config;
  config.layers = plan.geometry.layers;
  config.r = plan.count;
  config.norm = plan.norm;
  config.granularity = plan.granularity;
  config.search = plan.baseline ? options.text("baseline") : plan.disjoint ? "disjoint" : "search";
  plan_factors(options, model, quiet, config);
  return config;
}

void run_search(EliteSearch& search, Checkpoint& checkpoint, const RunOptions& run) {
  if (const auto state = checkpoint.load(run.resume, run.force)) search.restore(*state);
  Progress progress("elitekv", static_cast<double>(search.units()), run.quiet);
  while (search.done() < search.units()) {
    progress.update(static_cast<double>(search.done()));
    search.step();
    if (checkpoint.due()) search.save(checkpoint);
  }
}

/// Second moments of x from a live pass of their own: with --capture the states carry no x.
std::vector<double> live_second_moments(EliteInput& input, const Options& options, const RunOptions& run,
                                        const std::vector<std::size_t>& layers, CalibrationOps& ops) {
  input.session = load_model(std::move(input.model), options, run);
  LiveSource live(*input.session.decoder, tokens_of(input.corpus));
  std::vector<double> moments(layers.size() * input.config.d_model * input.config.d_model);
  SecondMomentSource tapped(live, ops, layers, input.config.d_model, moments);
  const StateNeeds needs{.layers = layers};
  Progress progress("whitening", static_cast<double>(live.documents()), run.quiet);
  for (std::size_t document = 0; document < live.documents(); ++document) {
    progress.update(static_cast<double>(document));
    tapped.visit(document, needs, [](const DocumentStates&) {});
  }
  return moments;
}

void write_figure_of(const std::filesystem::path& out, const EliteSearchPlan& plan, const EliteInput& input,
                     const EliteConfig& config, const RunOptions& run) {
  EliteMap map;
  map.heading = input.config.name + " · RoPElite, p = " + std::to_string(plan.norm) +
                ", r = " + std::to_string(plan.count) + " · " + std::to_string(input.source->documents()) +
                " documents of " + std::to_string(input.source->tokens()) + " tokens";
  if (plan.granularity == Granularity::kQueryHead) map.head_word = "Query head";
  map.layers = plan.geometry.layers;
  map.chunks = plan.geometry.chunks;
  for (const auto& heads : config.picks) {
    auto& row = map.elite.emplace_back();
    for (const ElitePicks& head : heads) row.push_back(head.chunks);
  }
  write_figure(beside(out, "_elite"), render_elite_map(map), run.replace());
}

/// The factors of every layer, written to `file`. @return its name and digest
ConfigFile write_factors(EliteInput& input, const Options& options, const RunOptions& run, const EliteSearch& search,
                         CalibrationOps& ops, const std::filesystem::path& file, EliteConfig& config) {
  std::vector<double> moments;
  if (config.whitened && input.reader) moments = live_second_moments(input, options, run, config.layers, ops);
  const std::size_t tokens = provenance(options, run, input.corpus).tokens;
  if (config.whitened && tokens < input.config.d_model)
    remark("note: " + std::to_string(tokens) + " tokens are fewer than d_model = " +
               std::to_string(input.config.d_model) + "; the whitening leans on its ridge",
           run.quiet);
  const std::size_t size = input.config.d_model * input.config.d_model;
  std::vector<OutputTensor> tensors;
  Progress progress("factors", static_cast<double>(config.layers.size()), run.quiet);
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    progress.update(static_cast<double>(n));
    check_interrupt();
    const auto moment = !config.whitened  ? std::span<const double>()
                        : moments.empty() ? search.second_moment(n)
                                          : std::span<const double>(moments).subspan(n * size, size);
    std::ranges::move(factorise_layer(*input.files(), n, moment, tokens, ops, config), std::back_inserter(tensors));
  }
  StagedOutput staged(file, StagedOutput::Kind::kFile);
  write_safetensors(staged.path(), tensors, {{"format", "kvspectrum-elitekv"}});
  const std::string digest = sha256_of_file(staged.path());
  staged.commit(run.replace());
  return {file.filename().string(), digest};
}

/// The first-power search, in FLOPs at the rate of products: each pass takes every pair of tokens, head and chunk.
double distance_flops(const EliteSearchPlan& plan, double documents, double tokens) {
  constexpr double kPerPairAndChunk = 60;  // measured on the CPU: sine-cosine products and a sum of magnitudes
  if (plan.norm != 1) return 0;
  const auto cells =
      static_cast<double>(plan.geometry.layers.size() * plan.geometry.query_heads * plan.geometry.chunks);
  return documents * static_cast<double>(plan.count) * cells * tokens * tokens / 2 * kPerPairAndChunk;
}

void announce_search(const EliteInput& input, const EliteSearchPlan& plan, const RunOptions& run) {
  const auto documents = static_cast<double>(input.source->documents());
  const auto tokens = static_cast<double>(input.source->tokens());
  Estimate estimate{.flops = distance_flops(plan, documents, tokens)};
  estimate.memory_bytes = elite_sums_memory(input.config, plan.geometry.layers.size(), plan.d_model > 0);
  if (input.reader) {
    const double passes = plan.norm == 1 ? static_cast<double>(plan.count) : 1;
    estimate.read_bytes = passes * static_cast<double>(capture_bytes(input.reader->header()));
    estimate.memory_bytes += captured_memory(input.reader->header());
  } else {
    estimate.flops += 1.2 * documents * forward_flops(input.config, tokens);
    estimate.memory_bytes += session_memory(input.session, input.source->tokens());
  }
  announce(estimate, input.source->backend(), run);
}

}  // namespace

void run_elitekv(Arguments arguments) {
  const auto options = elitekv_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const std::filesystem::path out = options->text("out"), factor_file = beside(out, ".safetensors");
  auto others = figure_paths(out, "_elite");
  if (options->has("rank")) others.push_back(factor_file);
  check_outputs(out, others, *options, run);
  const OutputLock lock(out, run.lock);
  const int norm = static_cast<int>(options->integer("norm", 1, 2));
  const bool from_capture = options->has("capture");
  const bool whiten = options->has("rank") && (options->has("whiten") ? options->on_off("whiten") : !from_capture);

  EliteInput input = open_elite_input(*options, run, whiten);
  if (is_finished(out, out, run, [&](const Json& config) {
        return is_of_run(config, "/calibration", *options, input.model_sha256, input.corpus);
      }))
    return print_result(run, read_config(out), out.string() + ": finished before\n");
  EliteSearchPlan plan = search_plan(*options, input, norm);
  EliteConfig found = planned_config(*options, plan, input.config, run.quiet);
  found.whitened = whiten && found.rank;
  if (found.whitened && !from_capture) plan.d_model = input.config.d_model;
  start_elite_source(input, *options, run, norm);
  announce_search(input, plan, run);
  const auto ops = make_calibration_ops(input.source->backend());
  EliteSearch search(plan, *ops, *input.source, input.held ? *input.held : *input.source);
  Checkpoint checkpoint(out, input.identity);
  run_search(search, checkpoint, run);

  found.picks = search.picks();
  std::vector<ConfigFile> files;
  if (found.rank) files.push_back(write_factors(input, *options, run, search, *ops, factor_file, found));
  Provenance record = provenance(*options, run, input.corpus);
  if (from_capture) {
    record.documents = input.source->documents();
    record.window = input.source->tokens();
    record.tokens = record.documents * input.source->tokens();
  }
  const Json config = make_config("elitekv", input.config, input.model_sha256, elite_parameters(found),
                                  elite_calibration(found), record, Json::object(), files);
  write_figure_of(out, plan, input, found, run);
  write_file_atomically(out, dump_json(config) + "\n", run.replace());
  checkpoint.remove();
  print_result(run, config, elite_summary(found, input.config));
}

}  // namespace kvs
