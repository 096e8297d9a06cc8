#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "calibrate/elite_allocation.h"
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
#include "eval/elite_allocate.h"
#include "eval/elite_factors.h"
#include "eval/elite_outputs.h"
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

bool has_factors(const Options& options) { return options.has("rank") || options.has("ratio"); }

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
      .value("pairs", "attention|uniform",
             "what a pair of query and key counts for: the attention between them, which also weighs the inputs, or "
             "all the same (default: attention with --whiten both, --norm 2 and no --baseline)")
      .value("granularity", "kv-head|query-head", "query-head: analysis only on grouped-query models", "kv-head")
      .value("baseline", "uniform|contribution|high|low", "instead of a search")
      .value("disjoint", "on|off", "no two heads of a layer share a chunk", "off")
      .value("ratio", "x",
             "instead of --elite and --rank: a cache of x of the full one; all pairs of r and d_ckv are tried on "
             "documents held out, and the best is fitted to all")
      .value("rank-step", "N", "with --ratio: d_ckv is a multiple of N (default: 128, for small models 8)")
      .value("held-out", "N", "with --ratio: so many documents, evenly spaced (default: a quarter)")
      .value("rank", "d_ckv", "also factorise to this rank (separate: the budget d_ck + d_cv)")
      .value("factorization", "joint|separate", "J-LRD or S-LRD", "joint")
      .value("whiten", "off|on|both",
             "weigh errors by nothing, the inputs seen in the text, or these and what reads keys and values (default: "
             "both, with --capture off)")
      .value("queries", "fitted|model",
             "with --rank: turn W_q to make up for what is not rotated (default: fitted with --pairs attention and "
             "below full rank)")
      .value("outputs", "model|fitted",
             "with --rank: correct W_o by least squares to the full cache's attention; one more pass", "model")
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

Whitening planned_whitening(const Options& options) {
  static constexpr std::string_view kWords[] = {"off", "on", "both"};
  if (!has_factors(options)) return Whitening::kOff;
  if (!options.has("whiten")) return options.has("capture") ? Whitening::kOff : Whitening::kBoth;
  return static_cast<Whitening>(std::ranges::find(kWords, options.choice("whiten", kWords)) - kWords);
}

/// What --ratio leaves to choose from.
std::vector<EliteAllocation> allocations(const Options& options, const ModelConfig& model) {
  for (const char* const name : {"elite", "rank", "capture"})
    if (options.has(name)) throw Error(ErrorCode::kUsage, "--ratio", std::string("found beside --") + name);
  if (options.integer("norm", 1, 2) == 1)
    throw Error(ErrorCode::kUsage, "--ratio", "needs --norm 2: with 1 every r is a search of its own");
  const double ratio = options.real("ratio", 0, 1);
  const std::size_t step =
      options.has("rank-step") ? static_cast<std::size_t>(options.integer("rank-step", 1, 1 << 20)) : 0;
  auto result = elite_allocations({model.d_model, model.kv_heads, model.head_dim, model.chunks()}, ratio,
                                  options.flag("allow-more-parameters"), step);
  if (result.empty())
    throw Error(ErrorCode::kUsage, "--ratio",
                "found " + options.text("ratio") + ", of which no pair of r and d_ckv makes a cache: try --rank-step");
  return result;
}

/// --pairs attention or its default.
bool by_attention(const Options& options, const EliteSearchPlan& plan) {
  static constexpr std::string_view kWords[] = {"attention", "uniform"};
  const bool possible = plan.norm == 2 && !plan.baseline;
  if (!options.has("pairs")) return possible && planned_whitening(options) == Whitening::kBoth;
  const bool wanted = options.choice("pairs", kWords) == kWords[0];
  if (wanted && !possible) throw Error(ErrorCode::kUsage, "--pairs", "attention needs --norm 2 and no --baseline");
  return wanted;
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
  plan.count = options.has("ratio")
                   ? allocations(options, config).back().r
                   : static_cast<std::size_t>(options.integer("elite", 1, static_cast<std::int64_t>(config.chunks())));
  if (options.has("baseline"))
    plan.baseline =
        static_cast<EliteBaseline>(std::ranges::find(kBaselines, options.choice("baseline", kBaselines)) - kBaselines);
  plan.disjoint = options.on_off("disjoint");
  if (by_attention(options, plan))
    for (const std::size_t layer : plan.geometry.layers)
      plan.rules.push_back({config.score_scale(), config.attention_softcap, config.window(layer)});
  if (plan.disjoint) require_method(MethodId::kDisjoint, config);
  if (plan.disjoint && (norm == 1 || plan.baseline || plan.granularity == Granularity::kQueryHead))
    throw Error(ErrorCode::kUsage, "--disjoint", "on needs --norm 2, --granularity kv-head and no --baseline");
  if (plan.disjoint && plan.count * config.kv_heads > config.chunks())
    throw Error(ErrorCode::kUsage, "--elite",
                "found " + std::to_string(plan.count) + " with --disjoint on, expected at most " +
                    std::to_string(config.chunks() / config.kv_heads));
  return plan;
}

/// --queries fitted or its default: factors of full rank stand for keys and values as they are.
bool fits_queries(const Options& options, const ModelConfig& model, const EliteConfig& config) {
  static constexpr std::string_view kWords[] = {"fitted", "model"};
  if (!options.has("queries")) return config.by_attention && *config.rank < full_rank(model, config.r, config.joint);
  const bool wanted = options.choice("queries", kWords) == kWords[0];
  if (wanted && !config.by_attention) throw Error(ErrorCode::kUsage, "--queries", "fitted needs --pairs attention");
  return wanted;
}

/// What the options say of factors: --rank checked against full rank and the no-extra-parameters bound. No rank without
/// --rank or where a query head's own rows cannot be.
void plan_factors(const Options& options, const ModelConfig& model, bool quiet, EliteConfig& config) {
  static constexpr std::string_view kSplits[] = {"up", "down", "sqrt"}, kOutputs[] = {"model", "fitted"};
  config.joint = options.text("factorization") == "joint";
  config.split = static_cast<SingularSplit>(std::ranges::find(kSplits, options.choice("split", kSplits)) - kSplits);
  if (!has_factors(options)) return;
  require_method(MethodId::kFactors, model);
  if (!config.joint && 2 * config.r == model.head_dim)
    throw Error(
        ErrorCode::kUsage, "--factorization",
        "found separate with every channel of a key elite, expected joint: no row of the keys is left to factorise");
  const auto limit = static_cast<std::int64_t>(full_rank(model, config.r, config.joint));
  const auto rank = options.has("ratio")
                        ? allocations(options, model).back().d_ckv
                        : static_cast<std::size_t>(options.integer("rank", config.joint ? 1 : 2, limit));
  if (config.granularity == Granularity::kQueryHead && model.group() > 1) {
    remark(
        "note: elite sets per query head are analysis only on a model whose query heads share keys; no factors are "
        "made",
        quiet);
    return;
  }
  config.rank = rank;
  config.fitted_queries = fits_queries(options, model, config);
  config.fitted_outputs = options.choice("outputs", kOutputs) == kOutputs[1];
  if (config.fitted_outputs && options.has("capture"))
    throw Error(ErrorCode::kUsage, "--outputs", "fitted needs --model and --text, found --capture");
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
  config.by_attention = !plan.rules.empty();
  config.granularity = plan.granularity;
  config.search = plan.baseline ? options.text("baseline") : plan.disjoint ? "disjoint" : "search";
  plan_factors(options, model, quiet, config);
  return config;
}

/// Steps that are saved, up to the `last` one.
void run_search(EliteSearch& search, std::size_t last, Checkpoint& checkpoint, const RunOptions& run) {
  if (const auto state = checkpoint.load(run.resume, run.force)) search.restore(*state);
  Progress progress("elitekv", static_cast<double>(last), run.quiet);
  while (search.done() < last) {
    progress.update(static_cast<double>(search.done()));
    search.step();
    if (checkpoint.due()) search.save(checkpoint);
  }
}

/// Second moments of x from a live pass of their own: with --capture the states carry no x.
std::vector<double> live_moments(EliteInput& input, const Options& options, const RunOptions& run,
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
                ", r = " + std::to_string(config.r) + " · " + std::to_string(input.source->documents()) +
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

/// Adds to the factors what their caches' outputs are corrected by.
void add_fitted_outputs(EliteInput& input, const RunOptions& run, const EliteConfig& config, CalibrationOps& ops,
                        std::vector<FactorTensor>& tensors) {
  EliteConfig uncorrected = config;
  uncorrected.fitted_outputs = false;
  std::vector<EliteLayer> layers;
  const FactorReader read = reader_of(tensors);
  for (std::size_t n = 0; n < config.layers.size(); ++n)
    layers.push_back(elite_layer(uncorrected, n, *input.files(), read));
  const auto documents = tokens_of(input.corpus);
  Progress progress("outputs", static_cast<double>(documents.size()), run.quiet);
  std::ranges::move(fit_outputs(*input.session.decoder, ops, layers, documents,
                                [&](std::size_t done) { progress.update(static_cast<double>(done)); }),
                    std::back_inserter(tensors));
}

/// The factors of every layer, written to `file`. @return its name and digest
ConfigFile write_factors(EliteInput& input, const Options& options, const RunOptions& run, const EliteSearch& search,
                         CalibrationOps& ops, const std::filesystem::path& file, EliteConfig& config) {
  std::vector<double> moments;
  const bool whitened = config.whitening != Whitening::kOff;
  if (whitened && input.reader) moments = live_moments(input, options, run, config.layers, ops);
  const std::size_t tokens = provenance(options, run, input.corpus).tokens;
  if (whitened && tokens < input.config.d_model)
    remark("note: " + std::to_string(tokens) + " tokens are fewer than d_model = " +
               std::to_string(input.config.d_model) + "; the whitening leans on its ridge",
           run.quiet);
  const std::size_t size = input.config.d_model * input.config.d_model;
  const std::span<const double> sums = moments.empty() ? search.moments() : std::span<const double>(moments);
  std::vector<FactorTensor> tensors;
  Progress progress("factors", static_cast<double>(config.layers.size()), run.quiet);
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    progress.update(static_cast<double>(n));
    check_interrupt();
    const auto moment = whitened ? sums.subspan(n * size, size) : std::span<const double>();
    std::ranges::move(factorise_layer(*input.files(), n, moment, tokens, search.attention(), ops, config),
                      std::back_inserter(tensors));
  }
  if (config.fitted_outputs) add_fitted_outputs(input, run, config, ops, tensors);
  std::vector<OutputTensor> written;
  written.reserve(tensors.size());
  for (FactorTensor& tensor : tensors)
    written.push_back(held_tensor(tensor.name, std::move(tensor.shape), std::move(tensor.values)));
  StagedOutput staged(file, StagedOutput::Kind::kFile);
  write_safetensors(staged.path(), written, {{"format", "kvspectrum-elitekv"}});
  const std::string digest = sha256_of_file(staged.path());
  staged.commit(run.replace());
  return {file.filename().string(), digest};
}

/// --held-out or its default.
std::size_t held_out_documents(const Options& options, const Corpus& corpus) {
  const std::size_t documents = corpus.documents.size();
  if (documents < 2)
    throw Error(ErrorCode::kUsage, "--ratio", "found one document, expected two or more: one held out");
  return options.has("held-out")
             ? static_cast<std::size_t>(options.integer("held-out", 1, static_cast<std::int64_t>(documents) - 1))
             : std::max<std::size_t>(1, documents / 4);
}

/// Moves `count` documents, evenly spaced, to the end.
void hold_out(Corpus& corpus, std::size_t count) {
  std::vector<Document> fitted, held;
  const std::size_t documents = corpus.documents.size();
  for (std::size_t n = 0; n < documents; ++n)
    ((n + 1) * count / documents > n * count / documents ? held : fitted).push_back(std::move(corpus.documents[n]));
  std::ranges::move(held, std::back_inserter(fitted));
  corpus.documents = std::move(fitted);
}

/// Tries every allocation on the last `held_out` documents, which the search has not seen, and takes the best.
void choose_allocation(EliteInput& input, const Options& options, const RunOptions& run, const EliteSearch& search,
                       CalibrationOps& ops, std::size_t held_out, EliteConfig& config) {
  auto documents = tokens_of(input.corpus);
  const std::size_t fitted = documents.size() - held_out, tokens = fitted * documents.front().size();
  documents.erase(documents.begin(), documents.begin() + static_cast<std::ptrdiff_t>(fitted));
  const auto candidates = allocations(options, input.config);
  Progress progress("pairs", static_cast<double>(candidates.size()), run.quiet);
  for (const EliteAllocation& candidate : candidates) {
    progress.update(static_cast<double>(config.trials.size()));
    config.r = candidate.r;
    config.rank = candidate.d_ckv;
    config.trials.push_back(
        try_allocation(*input.files(), *input.session.decoder, search, tokens, ops, config, documents));
  }
  const EliteTrial& best = best_of(config.trials);
  config.r = best.r;
  config.rank = best.d_ckv;
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
  if (has_factors(*options)) others.push_back(factor_file);
  check_outputs(out, others, *options, run);
  const OutputLock lock(out, run.lock);
  const int norm = static_cast<int>(options->integer("norm", 1, 2));
  const bool from_capture = options->has("capture");
  const Whitening whitening = planned_whitening(*options);

  EliteInput input = open_elite_input(*options, run, whitening != Whitening::kOff);
  if (is_finished(out, out, run, [&](const Json& config) {
        return is_of_run(config, "/calibration", *options, input.model_sha256, input.corpus);
      }))
    return print_result(run, read_config(out), out.string() + ": finished before\n");
  EliteSearchPlan plan = search_plan(*options, input, norm);
  EliteConfig found = planned_config(*options, plan, input.config, run.quiet);
  if (found.rank) found.whitening = whitening;
  if (found.whitening != Whitening::kOff && !from_capture) plan.d_model = input.config.d_model;
  if (options->has("ratio")) hold_out(input.corpus, held_out_documents(*options, input.corpus));
  start_elite_source(input, *options, run, norm);
  announce_search(input, plan, run);
  const auto ops = make_calibration_ops(input.source->backend());
  EliteSearch search(plan, *ops, *input.source, input.held ? *input.held : *input.source);
  Checkpoint checkpoint(out, input.identity);
  const std::size_t held_out = options->has("ratio") ? held_out_documents(*options, input.corpus) : 0;
  run_search(search, search.units() - held_out, checkpoint, run);
  if (held_out > 0) {
    choose_allocation(input, *options, run, search, *ops, held_out, found);
    while (search.done() < search.units()) search.step();  // not saved: another run would choose by what it fitted
  }
  found.picks = search.picks(found.r);
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
