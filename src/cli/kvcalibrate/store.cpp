#include <array>
#include <filesystem>

#include "calibrate/budget/options.h"
#include "calibrate/config/config.h"
#include "calibrate/full/fp8_sides.h"
#include "cli/kvcalibrate/commands.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

constexpr std::array<std::string_view, 2> kScaleOptions{"fp8-scale", "per"};

OptionTable type_options() {
  OptionTable table(
      "kvcalibrate store --model PATH --text PATH --out FILE [options]",
      "Measures the scales of an fp8 cache for each layer's keys after RoPE and for its values. With --budget: chooses "
      "llama.cpp's storage types of keys and of values for a byte budget.",
      {"kvcalibrate store --model SmolLM2.gguf --text book.txt --documents 8 --out fp8.json",
       "kvcalibrate store --model llama/ --text book.txt --fp8-scale ema --per head --out fp8.json",
       "kvcalibrate store --model SmolLM2.gguf --text book.txt --budget 40% --per-layer-rounds 1 --out q.json"});
  table.value("out", "FILE", "the config to write")
      .required()
      .value("fp8-scale", "max|ema",
             "scale from the largest magnitude in all documents (max) or from a moving average of each document's "
             "largest (ema)",
             "max")
      .value("per", "layer|head", "one scale per layer, or one per KV head", "layer");
  add_budget_options(table, "full");
  add_model_run_options(table, true);
  table.check([](const Options& options) {
    const std::array<std::string_view, 1> budget{"budget"}, resume{"resume"};
    (void)has_budget(options, kScaleOptions);
    require_partner(options, resume, budget);
  });
  return table;
}

/// The values of --fp8-scale and --per.
struct ScalesPlan {
  ExtremeRule rule = ExtremeRule::kMax;
  bool by_head = false;
};

ScalesPlan scales_plan(const Options& options) {
  static constexpr std::string_view kRules[] = {"max", "ema"}, kGroups[] = {"layer", "head"};
  return {options.choice("fp8-scale", kRules) == "max" ? ExtremeRule::kMax : ExtremeRule::kEma,
          options.choice("per", kGroups) == "head"};
}

void run_store(const Options& options) {
  if (has_budget(options, kScaleOptions)) return run_budget("full", options);
  const auto [rule, by_head] = scales_plan(options);
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs({.main = out, .kind = RunOutputs::Kind::kConfig});
  run.open_model();
  run.read_texts();
  run.load();
  const ModelConfig& model = run.config();
  run.print_estimate(
      {.flops = static_cast<double>(run.documents().size()) * forward_flops(model, static_cast<double>(run.tokens())),
       .memory_bytes = session_memory(run.session(), run.tokens())});
  Fp8Sides sides(model, rule, by_head);
  LiveSource source(run.decoder(), run.documents());
  Progress progress("store", source.documents(), run.quiet());
  sides.measure(source, progress.counter());
  const Json config = make_config("full", model, run.model().sha256(), sides.parameters(), sides.largest(),
                                  run.provenance(), Json::object(), {});
  run.finish(config, out.string() + ": fp8 scales of " + std::to_string(model.cached_layers().size()) + " layers\n");
}

}  // namespace

const Subcommand kStoreCommand{"store", type_options, run_store};

}  // namespace kvs::inline cli
