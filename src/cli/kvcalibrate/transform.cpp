#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "calibrate/transform/caches.h"
#include "calibrate/transform/config_file.h"
#include "calibrate/transform/cost.h"
#include "cli/kvcalibrate/budget.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "io/checkpoint.h"
#include "io/record.h"
#include "io/safetensors_writer.h"
#include "io/staged_output.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/live_source.h"

namespace kvs {
namespace {

constexpr double kMaxOutliers = 0.5;  // of the tokens

/// Tokens of the documents that the budget is for.
std::size_t document_length(const Options& options, std::size_t tokens) {
  constexpr auto kMost = static_cast<std::int64_t>(kMaxTransformTokens);
  return options.has("length") ? static_cast<std::size_t>(options.integer("length", 1, kMost)) : tokens;
}

/// --recent, of documents of so many tokens.
std::size_t recent_tokens(const Options& options, std::size_t tokens) {
  if (!options.has("recent")) return transform_recent(tokens);
  return static_cast<std::size_t>(options.integer("recent", 0, static_cast<std::int64_t>(tokens) / 4));
}

TransformRows rows_of(const Options& options) {
  const auto name = std::ranges::find(kTransformRowNames, options.choice("rows", kTransformRowNames));
  return static_cast<TransformRows>(name - kTransformRowNames.begin());
}

double outliers_of(const Options& options) {
  const TransformRows rows = rows_of(options);
  if (!options.has("outliers")) return transform_outliers(rows);
  return options.real("outliers", 0, rows == TransformRows::kHead ? 0 : kMaxOutliers);
}

std::size_t sinks_of(const Options& options, std::size_t tokens) {
  return static_cast<std::size_t>(options.integer("sinks", 0, static_cast<std::int64_t>(tokens) - 1));
}

void add_transform_options(OptionTable& table) {
  table.value("out", "FILE", "the config to write; its tensors go beside it")
      .required()
      .value(
          "budget", "SIZE",
          "a share of the full 16-bit cache, such as 12.5% or 0.125, or bytes such as '4096B a token': the most that "
          "is held of a document of --length tokens")
      .required()
      .value("length", "N", "tokens of the documents that the budget is for (default: of the text's, --window)")
      .from(1, kMaxTransformTokens)
      .value("sinks", "N", "first tokens that stay in full", std::to_string(kTransformSinks))
      .from(0)
      .value("recent", "N",
             "tokens that are coded together, once twice as many wait in q8_0; 0: each when it comes (default: a 32nd "
             "of --length, at most 16)")
      .from(0)
      .value("rows", "layer|head",
             "what is coded together: all of a token, or a head's keys by channel and a head's values, which attention "
             "reads as they are: faster to read, and larger at the same quality",
             "layer")
      .value("outliers", "x",
             "share of the other tokens that may stay in full, those that come out worst (default: 0.005; with --rows "
             "head: none)")
      .from(0, kMaxOutliers)
      .value("costs", "FILE",
             "take what errors cost from a transform config of the model (default: measure it, by coding one layer at "
             "a time)");
}

OptionTable transform_options() {
  OptionTable table("kvcalibrate transform --model PATH --text PATH --budget SIZE --out FILE [options]",
                    "A transform coder for the whole cache: bases, bits and quantisers under one budget of bytes.",
                    {"kvcalibrate transform --model SmolLM2.gguf --text book.txt --window 512 --documents 16 "
                     "--budget 12.5% --out transform.json"});
  add_transform_options(table);
  add_other_weights(table);
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  table.check([](const Options& options) {
    const auto window = static_cast<std::size_t>(options.integer("window", 2, 1 << 24));
    (void)parse_budget(options.text("budget"));
    (void)sinks_of(options, window);
    (void)recent_tokens(options, std::min(window, document_length(options, window)));
    (void)outliers_of(options);
  });
  return table;
}

/// --costs; nothing: they are to be measured.
std::vector<TransformScales> scales_of(const Options& options, const ModelSource& model) {
  if (!options.has("costs")) return {};
  const std::filesystem::path path = options.text("costs");
  const Json config = read_config(path);
  check_config_model(config, path, model);
  if (config.at("method") != "transform")
    throw Error(ErrorCode::kUsage, "--costs",
                "found a config of " + config.at("method").get<std::string>() + ", expected one of transform");
  const TransformConfig costs = read_transform_config(config, path.string());
  if (costs.layers.size() != model.config().layers)
    throw Error(ErrorCode::kUsage, "--costs",
                "found a config of " + std::to_string(costs.layers.size()) + " of " +
                    std::to_string(model.config().layers) + " layers, expected all");
  return costs.scales;
}

std::vector<TransformScales> losses_from(const JsonCursor& pairs, std::size_t layers) {
  if (pairs.array_size() > layers) pairs.fail("at most " + std::to_string(layers) + " pairs");
  std::vector<TransformScales> losses;
  for (std::size_t n = 0; n < pairs.array_size(); ++n) {
    const std::vector<double> pair = record_reals(pairs.at(n), 2);
    losses.push_back({pair[0], pair[1]});
  }
  return losses;
}

/// @return what was measured by a run before
std::vector<TransformScales> add_documents(TransformMoments& moments, Run& run) {
  LiveSource source(run.decoder(), run.documents());
  std::size_t done = 0;
  std::vector<TransformScales> losses;
  if (const auto state = run.saved_state()) {
    moments.restore(state->sums);
    done = state->documents;
    if (state->extra.is_array())
      losses = losses_from(JsonCursor(state->extra, run.options().text("out") + ".checkpoint"),
                           moments.geometry().layers.size());
  }
  Progress progress("transform: moments", source.documents(), run.quiet());
  for (; done < source.documents(); ++done) {
    progress.update(static_cast<double>(done));
    moments.add(source, done);
    if (run.checkpoint().due()) run.checkpoint().save(done + 1, moments.state());
  }
  return losses;
}

void save_losses(std::span<const TransformScales> losses, const TransformMoments& moments, std::size_t documents,
                 Checkpoint& checkpoint) {
  Json pairs = Json::array();
  for (const TransformScales& loss : losses) pairs.push_back({loss.keys, loss.values});
  checkpoint.save(documents, moments.state(), pairs);
}

/// The documents that costs are measured on.
std::span<const std::vector<std::int32_t>> measured_documents(const Run& run) {
  return std::span(run.documents()).first(std::min(kTransformMeasured, run.documents().size()));
}

/// What the caches do on these documents, beside the full cache.
CacheQuality measure_quality(const TransformCalibration& found, Run& run) {
  const auto documents = measured_documents(run);
  const TransformCaches caches(run.backend(), run.config(), found.layers);
  Progress progress("quality", documents.size(), run.quiet());
  return cache_quality(
      evaluate(run.decoder(), documents, {.make = [&] { return caches.make(); }, .compare = true}, progress.counter()),
      run.config(), run.tokens());
}

Json quality_json(const CacheQuality& quality, std::size_t documents) {
  const CacheLoss& loss = *quality.loss;
  return {{"text", documents == 1 ? "the first calibration document"
                                  : "the first " + std::to_string(documents) + " calibration documents"},
          {"ppl", json_of(quality.ppl)},
          {"nll_mean", quality.nll_mean},
          {"nll_error", quality.nll_error},
          {"errors_over", quality.errors_over},
          {"ratio", to_json(loss.ratio)},
          {"kl", loss.kl},
          {"kl_error", loss.kl_error},
          {"bytes_per_token", quality.bytes_per_token},
          {"ppl_full", json_of(loss.full.ppl)},
          {"nll_full", loss.full.nll_mean}};
}

TransformGeometry geometry_of(const Options& options, const ModelConfig& model, std::size_t tokens) {
  const std::size_t length = std::min(tokens, document_length(options, tokens));
  return transform_geometry(model, sinks_of(options, tokens), recent_tokens(options, length));
}

/// @throws Error kUsage for a budget that is too small
TransformPlan make_plan(const Options& options, const ModelSource& model, const TransformGeometry& geometry,
                        std::size_t tokens) {
  const std::size_t length = document_length(options, tokens);
  TransformPlan plan{.bytes = budget_bytes(options.text("budget"), full_cache_bytes(model.config(), length), length),
                     .tokens = length,
                     .outliers = outliers_of(options),
                     .rows = rows_of(options),
                     .scales = scales_of(options, model)};
  if (const std::size_t least = min_transform_bytes(model.config(), geometry, plan); plan.bytes < least)
    throw Error(ErrorCode::kUsage, "--budget",
                "found " + std::to_string(plan.bytes) + " bytes of a document of " + std::to_string(length) +
                    " tokens, expected at least " + std::to_string(least) +
                    ", what gains, sinks, outliers and tokens that wait take");
  return plan;
}

Estimate estimate_of(const TransformGeometry& geometry, const TransformPlan& plan, const Run& run) {
  const TransformText text{run.documents().size(), run.tokens(), plan.scales.empty()};
  return {.flops = transform_passes(geometry, text) * forward_flops(run.config(), static_cast<double>(run.tokens())),
          .memory_bytes =
              session_memory(run.session(), run.tokens()) + transform_memory(geometry, text, run.config().d_model),
          .coded_values = transform_coded_values(geometry, text)};
}

TransformCalibration calibrate(const TransformPlan& plan, const TransformMoments& moments, Run& run) {
  PhaseProgress progress(run.quiet());
  return calibrate_transform(
      run.decoder(), moments, run.documents(), plan,
      [&](std::string_view step, std::size_t done, std::size_t total) {
        progress.update(std::string(step), done, total);
      },
      [&](std::span<const TransformScales> losses) {
        if (run.checkpoint().due()) save_losses(losses, moments, run.documents().size(), run.checkpoint());
      });
}

std::string summary(const TransformConfig& config, const CacheQuality& measured, const Json& quality) {
  std::size_t bytes = 0;
  for (const std::size_t of_layer : config.code_bytes) bytes += of_layer;
  return "transform: " + std::to_string(bytes) + " bytes of codes a token in " + std::to_string(config.layers.size()) +
         " layers; " + shared_bytes_text(quality.at("shared_bytes").get<std::size_t>(), config.window) + "\n  on " +
         quality.at("text").get<std::string>() + ": " + quality_text(measured) + '\n';
}

}  // namespace

void run_transform(Arguments arguments) {
  const auto options = transform_options().parse(arguments, std::cout);
  if (!options) return;
  const std::filesystem::path out = options->text("out");
  Run run(*options);
  run.take_outputs({.main = out,
                    .others = {sibling_path(out, ".safetensors")},
                    .kind = RunOutputs::Kind::kConfig,
                    .state = RunOutputs::State::kCheckpoint});
  run.open_model();
  run.read_texts();
  add_decompositions(run.identity());
  if (run.is_finished()) return;
  const TransformGeometry geometry = geometry_of(*options, run.config(), run.tokens());
  TransformPlan plan = make_plan(*options, run.model(), geometry, run.tokens());
  TransformMoments moments = transform_moments(run.model(), geometry);
  run.load();
  run.print_estimate(estimate_of(geometry, plan, run));
  plan.losses = add_documents(moments, run);
  const TransformCalibration found = calibrate(plan, moments, run);
  const CacheQuality quality = measure_quality(found, run);
  const Json config = write_transform_config(found, run.model(), run.provenance(), out, run.settings().replace(),
                                             quality_json(quality, measured_documents(run).size()));
  run.remove_state();
  run.print(config, summary(found.config, quality, config.at("quality")));
}

}  // namespace kvs
