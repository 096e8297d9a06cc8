#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "calibrate/transform/caches.h"
#include "calibrate/transform/config_file.h"
#include "calibrate/transform/cost.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/kvcalibrate/budget.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/evaluation_report.h"
#include "io/checkpoint.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/record.h"
#include "io/safetensors_writer.h"
#include "io/staged_output.h"
#include "states/live_source.h"

namespace kvs {
namespace {

constexpr double kMostOutliers = 0.5;  // of the tokens

/// Tokens of the documents that the budget is for.
std::size_t document_length(const Options& options, std::size_t tokens) {
  constexpr auto kMost = static_cast<std::int64_t>(kMostTransformTokens);
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
  return options.real("outliers", 0, rows == TransformRows::kHead ? 0 : kMostOutliers);
}

std::size_t sinks_of(const Options& options, std::size_t tokens) {
  return static_cast<std::size_t>(options.integer("sinks", 0, static_cast<std::int64_t>(tokens) - 1));
}

OptionTable transform_options() {
  OptionTable table("kvcalibrate transform --model PATH --text PATH --budget SIZE --out FILE [options]",
                    "A transform coder for the whole cache: bases, bits and quantisers under one budget of bytes.",
                    {"kvcalibrate transform --model SmolLM2.gguf --text book.txt --window 512 --documents 16 "
                     "--budget 12.5% --out transform.json"});
  table.value("out", "FILE", "the config to write; its tensors go beside it")
      .required()
      .value(
          "budget", "SIZE",
          "a share of the full 16-bit cache, such as 12.5% or 0.125, or bytes such as '4096B a token': the most that "
          "is held of a document of --length tokens")
      .required()
      .value("length", "N", "tokens of the documents that the budget is for (default: of the text's, --window)")
      .from(1, kMostTransformTokens)
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
      .from(0, kMostOutliers)
      .value("costs", "FILE",
             "take what errors cost from a transform config of the model (default: measure it, by coding one layer at "
             "a time)");
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
std::vector<TransformScales> add_documents(TransformMoments& moments, StateSource& source, Checkpoint& checkpoint,
                                           const std::filesystem::path& out, const RunOptions& run) {
  std::size_t done = 0;
  std::vector<TransformScales> losses;
  if (const auto state = load_checkpoint(checkpoint, out, run)) {
    moments.restore(state->sums);
    done = state->documents;
    if (state->extra.is_array())
      losses = losses_from(JsonCursor(state->extra, out.string() + ".checkpoint"), moments.geometry().layers.size());
  }
  Progress progress("transform: moments", static_cast<double>(source.documents()), run.quiet);
  for (; done < source.documents(); ++done) {
    progress.update(static_cast<double>(done));
    moments.add(source, done);
    if (checkpoint.due()) checkpoint.save(done + 1, moments.state());
  }
  return losses;
}

void save_losses(std::span<const TransformScales> losses, const TransformMoments& moments, std::size_t documents,
                 Checkpoint& checkpoint) {
  Json pairs = Json::array();
  for (const TransformScales& loss : losses) pairs.push_back({loss.keys, loss.values});
  checkpoint.save(documents, moments.state(), pairs);
}

/// What the caches do on the documents that costs are measured on, beside the full cache.
Json measured_quality(ModelSession& session, const TransformCalibration& found,
                      std::span<const std::vector<std::int32_t>> documents, const RunOptions& run) {
  documents = documents.first(std::min(kTransformMeasured, documents.size()));
  const TransformCaches caches(*session.backend, session.config(), found.layers);
  Progress progress("quality", static_cast<double>(documents.size()), run.quiet);
  const Evaluation evaluation =
      evaluate(*session.decoder, documents, {.make = [&] { return caches.make(); }, .compare = true},
               [&](std::size_t done) { progress.update(static_cast<double>(done)); });
  const Json measured = evaluation_json(evaluation, session.config(), documents.front().size());
  Json quality{{"text", documents.size() == 1
                            ? "the first calibration document"
                            : "the first " + std::to_string(documents.size()) + " calibration documents"}};
  for (const char* name : {"ppl", "nll_mean", "nll_error", "errors_over", "ratio", "kl", "kl_error", "bytes_per_token"})
    quality[name] = measured.at(name);
  quality["ppl_full"] = measured.at("full").at("ppl");
  quality["nll_full"] = measured.at("full").at("nll_mean");
  return quality;
}

std::string summary(const TransformConfig& config, const Json& quality) {
  std::size_t bytes = 0;
  for (const std::size_t of_layer : config.code_bytes) bytes += of_layer;
  return "transform: " + std::to_string(bytes) + " bytes of codes a token in " + std::to_string(config.layers.size()) +
         " layers; " + shared_bytes_text(quality.at("shared_bytes").get<std::size_t>(), config.window) + "\n  on " +
         quality.at("text").get<std::string>() + ": " + quality_text(quality) + '\n';
}

}  // namespace

void run_transform(Arguments arguments) {
  const auto options = transform_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const std::filesystem::path out = options->text("out"), tensors = beside(out, ".safetensors");
  check_outputs(out, std::span(&tensors, 1), *options, run);
  const OutputLock lock(out, run.lock, std::span(&tensors, 1));
  auto source = open_model(*options);
  const Corpus corpus = load_corpus(*options, run, *source);
  Json identity = run_identity(*options, *source, corpus);
  add_decompositions(identity);
  if (is_finished(
          out, out, run, [&](const Json& config) { return is_of_run(config, "/calibration", *options, identity); },
          [&](const Json&) { return std::vector{tensors}; }))
    return print_result(run, read_config(out), out.string() + ": finished before\n");
  const auto documents = tokens_of(corpus);
  const std::size_t tokens = documents.front().size(), length = document_length(*options, tokens);
  const TransformGeometry geometry = transform_geometry(source->config(), sinks_of(*options, tokens),
                                                        recent_tokens(*options, std::min(tokens, length)));
  TransformPlan plan{.bytes = budget_bytes(options->text("budget"), full_cache_bytes(source->config(), length), length),
                     .tokens = length,
                     .outliers = outliers_of(*options),
                     .rows = rows_of(*options),
                     .scales = scales_of(*options, *source)};
  if (const std::size_t least = least_transform_bytes(source->config(), geometry, plan); plan.bytes < least)
    throw Error(ErrorCode::kUsage, "--budget",
                "found " + std::to_string(plan.bytes) + " bytes of a document of " + std::to_string(length) +
                    " tokens, expected at least " + std::to_string(least) +
                    ", what gains, sinks, outliers and tokens that wait take");
  Checkpoint checkpoint(out, identity);
  TransformMoments moments = transform_moments(*source, geometry);
  ModelSession session = load_model(std::move(source), *options, run);
  const TransformText text{documents.size(), tokens, plan.scales.empty()};
  announce(
      {.flops = transform_passes(geometry, text) * forward_flops(session.config(), static_cast<double>(tokens)),
       .memory_bytes = session_memory(session, tokens) + transform_memory(geometry, text, session.config().d_model),
       .coded_values = transform_coded_values(geometry, text)},
      *session.backend, run);
  LiveSource live(*session.decoder, documents);
  plan.losses = add_documents(moments, live, checkpoint, out, run);
  std::optional<Progress> progress;
  std::string_view current;
  const TransformCalibration found = calibrate_transform(
      *session.decoder, moments, documents, plan,
      [&](std::string_view step, std::size_t done, std::size_t total) {
        if (step != current || done == 0) progress.emplace(std::string(step), static_cast<double>(total), run.quiet);
        current = step;
        progress->update(static_cast<double>(done));
      },
      [&](std::span<const TransformScales> losses) {
        if (checkpoint.due()) save_losses(losses, moments, documents.size(), checkpoint);
      });
  progress.reset();
  const Json config = write_transform_config(found, *session.source, provenance(*options, run, corpus), out,
                                             run.replace(), measured_quality(session, found, documents, run));
  checkpoint.remove();
  print_result(run, config, summary(found.config, config.at("quality")));
}

}  // namespace kvs
