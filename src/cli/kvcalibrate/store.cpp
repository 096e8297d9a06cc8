#include <array>
#include <filesystem>
#include <iostream>

#include "calibrate/config/config.h"
#include "calibrate/full/fp8_scales.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/budget.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "io/file.h"
#include "states/live_source.h"

namespace kvs {
namespace {

constexpr std::array<std::string_view, 2> kScaleOptions{"fp8-scale", "per"};

OptionTable store_options() {
  OptionTable table(
      "kvcalibrate store --model PATH --text PATH --out FILE [options]",
      "Measures the scales of an fp8 cache: of each layer's keys after RoPE and of its values. With --budget: chooses "
      "llama.cpp's kinds for so many bytes, keys and values apart.",
      {"kvcalibrate store --model SmolLM2.gguf --text book.txt --documents 8 --out fp8.json",
       "kvcalibrate store --model llama/ --text book.txt --fp8-scale ema --per head --out fp8.json",
       "kvcalibrate store --model SmolLM2.gguf --text book.txt --budget 40% --by-layer 1 --out q.json"});
  table.value("out", "FILE", "the config to write")
      .required()
      .value("fp8-scale", "max|ema",
             "from the largest magnitude of all documents, or from a moving average of each document's", "max")
      .value("per", "layer|head", "one scale for a layer, or one for each of its KV heads", "layer");
  add_budget_options(table, "full");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  table.check([](const Options& options) {
    const std::array<std::string_view, 1> budget{"budget"}, resume{"resume"};
    (void)has_budget(options, kScaleOptions);
    require_partner(options, resume, budget);
  });
  return table;
}

/// What is measured of each layer's keys, or of its values.
struct Side {
  StateKind kind;
  const char* parameter;
  std::vector<Fp8Scales> layers;

  /// [layer], of a scale or of a scale for each head.
  Json scales(bool by_head) const {
    Json all = Json::array();
    for (const Fp8Scales& layer : layers) all.push_back(by_head ? Json(layer.scales()) : Json(layer.scales().front()));
    return all;
  }
  Json largest() const {
    Json all = Json::array();
    for (const Fp8Scales& layer : layers) all.push_back(layer.largest());
    return all;
  }
};

}  // namespace

void run_store(Arguments arguments) {
  const auto options = store_options().parse(arguments, std::cout);
  if (!options) return;
  if (has_budget(*options, kScaleOptions)) return run_budget("full", *options);
  static constexpr std::string_view kRules[] = {"max", "ema"}, kGroups[] = {"layer", "head"};
  const RunOptions run = run_options(*options);
  const ExtremeRule rule = options->choice("fp8-scale", kRules) == "max" ? ExtremeRule::kMax : ExtremeRule::kEma;
  const bool by_head = options->choice("per", kGroups) == "head";
  const std::filesystem::path out = options->text("out");
  check_outputs(out, {}, *options, run);
  const OutputLock lock(out, run.lock);
  auto opened = open_model(*options);
  const Corpus corpus = load_corpus(*options, run, *opened);
  ModelSession session = load_model(std::move(opened), *options, run);
  const ModelConfig& model = session.config();
  LiveSource source(*session.decoder, tokens_of(corpus));
  announce(
      {.flops = static_cast<double>(source.documents()) * forward_flops(model, static_cast<double>(source.tokens())),
       .memory_bytes = session_memory(session, source.tokens())},
      *session.backend, run);

  const std::size_t groups = by_head ? model.kv_heads : 1;
  Side keys{StateKind::kKPost, "scale_k", {model.layers, {rule, groups}}},
      values{StateKind::kV, "scale_v", {model.layers, {rule, groups}}};
  StateNeeds needs{.layers = {}, .states = {keys.kind, values.kind}};
  for (std::size_t layer = 0; layer < model.layers; ++layer) needs.layers.push_back(layer);
  Progress progress("store", static_cast<double>(source.documents()), run.quiet);
  for (std::size_t document = 0; document < source.documents(); ++document) {
    progress.update(static_cast<double>(document));
    source.visit(document, needs, [&](const DocumentStates& states) {
      for (Side* side : {&keys, &values})
        side->layers[states.layer].add(download(*session.backend, states[side->kind]), model.kv_heads, model.head_dim);
    });
  }
  const Json config = make_config(
      "full", model, session.source->sha256(),
      {{"store", "fp8"}, {keys.parameter, keys.scales(by_head)}, {values.parameter, values.scales(by_head)}},
      {{"largest_k", keys.largest()}, {"largest_v", values.largest()}}, provenance(*options, run, corpus),
      Json::object(), {});
  write_file_atomically(out, dump_json(config) + "\n", run.replace());
  print_result(run, config, out.string() + ": fp8 scales of " + std::to_string(model.layers) + " layers\n");
}

}  // namespace kvs
