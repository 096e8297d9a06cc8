// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>

#include "calibrate/budget/options.h"
#include "calibrate/config/config.h"
#include "calibrate/full/kv_scales.h"
#include "calibrate/full/scale_choice.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "core/nearest.h"
#include "export/engines/engine.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

constexpr std::array<std::string_view, 3> kScaleOptions{"types", "scale", "per"};

/// Refuses an engine without storage types, and types by layer in an engine that has one type for all layers.
void check_engine_types(const Options& options) {
  const Engine& engine = engine_of(options.text("engine"), "--engine");
  require_compared_caches(engine, "--engine");
  if (engine.by_layer == TypesByLayer::kOne && options.has("per-layer-rounds"))
    throw Error(ErrorCode::kUnsupported, "--per-layer-rounds",
                "found with " + std::string(engine.name) + ", which has one type for all layers");
}

void check_type_options(const Options& options) {
  (void)has_budget(options, kScaleOptions);
  require_partner(options, {"resume", "engine"}, {"budget"});
  if (options.has("engine")) check_engine_types(options);
  if (options.text("per") == "pair" && options.text("types").find('/') != std::string::npos)
    throw Error(ErrorCode::kUsage, "--per", "found pair with " + options.text("types") + ", expected one type");
}

OptionTable type_options() {
  OptionTable table(
      "kvcalibrate store --model PATH --text PATH --out FILE [options]",
      "Measures the scales of an fp8 or nvfp4 cache by layer, for keys after RoPE and for values. Tries several rules "
      "and keeps the one that loses least. With --budget: chooses storage types for a byte budget, those of llama.cpp "
      "or of --engine. With --per-layer-rounds: chooses them for each layer.",
      {"kvcalibrate store --model SmolLM2.gguf --text book.txt --documents 8 --out fp8.json",
       "kvcalibrate store --model llama/ --text book.txt --types fp8/nvfp4 --scale ema --per head --out mixed.json",
       "kvcalibrate store --model SmolLM2.gguf --text book.txt --budget 40% --per-layer-rounds 1 --out q.json",
       "kvcalibrate store --model llama/ --text book.txt --budget 40% --engine vllm --per-layer-rounds 1 --out "
       "v.json"});
  table.value("out", "FILE", "the config to write")
      .required()
      .value("types", "fp8|nvfp4|fp8/nvfp4|nvfp4/fp8", "storage type of keys and values, or of each", "fp8")
      .value(
          "scale", "best|max|p99.99|p99.9|ema",
          "magnitude at which the type saturates: the largest of all documents (max), a quantile, a moving average of "
          "each document's largest (ema), or the rule of these whose cache diverges least from the full cache (best: "
          "two passes for each rule)",
          "best")
      .formerly("fp8-scale")
      .value("per", "layer|head|pair",
             "one scale for the keys of a layer and one for its values, one of each per KV head, or one for both",
             "layer")
      .value(
          "engine", "NAME",
          "with --budget: only types that this engine executes, different by layer only where the engine allows it: " +
              listed(engine_names()));
  add_budget_options(table, "full");
  add_model_run_options(table, true);
  table.check(check_type_options);
  return table;
}

KvScales scales_plan(const Options& options, const ModelConfig& model) {
  static constexpr std::string_view kSharings[] = {"layer", "head", "pair"};
  const auto sharing = std::ranges::find(kSharings, options.choice("per", kSharings)) - std::begin(kSharings);
  return {model, ScaledTypes::parse(options.text("types")), static_cast<ScaleSharing>(sharing)};
}

/// Returns the losses of the rules: of all that differ with --scale best, else of the given one, not measured.
std::vector<RuleLoss> losses_of(Run& run, const KvScales& scales) {
  const auto named = std::ranges::find(kScaleRuleNames, run.options().text("scale"));
  if (named != kScaleRuleNames.end()) {
    const auto rule = static_cast<ScaleRule>(named - kScaleRuleNames.begin());
    return {{.rule = rule, .saturated = scales.share_saturated(rule)}};
  }
  PhaseProgress progress(run.quiet());
  return rule_losses(run.decoder(), scales, run.documents(),
                     [&](std::size_t done, std::size_t most) { progress.update("rules", done, most); });
}

void run_store(const Options& options) {
  if (has_budget(options, kScaleOptions)) return run_budget("full", options);
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs({.main = out, .kind = RunOutputs::Kind::kConfig});
  run.open_model();
  run.read_texts();
  run.load();
  const ModelConfig& model = run.config();
  const double passes = options.text("scale") == "best" ? 1 + 2 * kScaleRuleNames.size() : 1;
  run.print_estimate({.flops = passes * static_cast<double>(run.documents().size()) *
                               forward_flops(model, static_cast<double>(run.tokens())),
                      .memory_bytes = session_memory(run.session(), run.tokens()),
                      .at_most = passes > 1});
  KvScales scales = scales_plan(options, model);
  LiveSource source(run.decoder(), run.documents());
  Progress progress("store", source.documents(), run.quiet());
  scales.measure(source, progress.counter());
  const std::vector<RuleLoss> losses = losses_of(run, scales);
  const ScaleRule rule = losses.size() == 1 ? losses.front().rule : best_rule(losses);
  Json calibration = scales.largest();
  calibration.update(scales.saturated(rule));
  calibration["scale"] = kScaleRuleNames[static_cast<std::size_t>(rule)];
  for (const RuleLoss& loss : losses) calibration["rules"].push_back(loss.to_json());
  const Json config = make_config("full", model, run.model().sha256(), scales.parameters(rule), std::move(calibration),
                                  run.provenance(), Json::object(), {});
  run.finish(config,
             out.string() + ": " + scales_text(options.text("types"), model.cached_layers().size(), rule, losses));
}

}  // namespace

const Subcommand kStoreCommand{"store", type_options, run_store};

}  // namespace kvs::inline cli
