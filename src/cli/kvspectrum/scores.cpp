// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>

#include "calibrate/common/layer_options.h"
#include "calibrate/lagkv/token_scores.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "results/token_scores.h"
#include "run/run.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

constexpr std::array<std::string_view, 2> kVariants{"lag", "local"};

LagkvOptions lagkv_options(const Options& options) {
  LagkvOptions lagkv;
  lagkv.sinks = options.count("sinks", 0, kMaxTokens);
  lagkv.lag = options.count("lag", 1, kMaxTokens);
  lagkv.ratio = options.real("ratio", 0, 1);
  lagkv.variant = static_cast<LagkvVariant>(std::ranges::find(kVariants, options.text("variant")) - kVariants.begin());
  if (lagkv.kept() == 0)
    throw Error(ErrorCode::kUsage, "--ratio",
                "found " + options.text("ratio") + ", which keeps none of " + std::to_string(lagkv.lag) +
                    " tokens, expected one that keeps some");
  return lagkv;
}

OptionTable scores_options() {
  OptionTable table(
      "kvspectrum scores --model PATH --text PATH --out FILE [options]",
      "Computes LagKV's scores of a document's tokens, by layer and KV head. Also finds the tokens that LagKV keeps.",
      {"kvspectrum scores --model SmolLM2.gguf --text book.txt --lag 64 --ratio 0.25 --out scores.json"});
  table.value("out", "FILE", "the JSON result; the figure is written next to it")
      .required()
      .value("window-index", "N", "index of the window in the text", "0")
      .formerly("document")
      .from(0)
      .value("sinks", "S", "first tokens, which LagKV always keeps", "16")
      .from(0, kMaxTokens)
      .value("lag", "L", "tokens in a partition", "128")
      .from(1, kMaxTokens)
      .value("ratio", "SHARE", "share of a partition's tokens that LagKV keeps", "0.25")
      .value("variant", "lag|local", "scale states by the range of the next partition (lag) or of their own (local)",
             "lag")
      .value("layers", "LAYERS", "layers to score, such as 0,14-16", "all")
      .check([](const Options& options) { (void)lagkv_options(options); });
  add_model_run_options(table, false);
  return table;
}

void run_scores(const Options& options) {
  const LagkvOptions lagkv = lagkv_options(options);
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs({.main = out, .others = figure_paths(out, "")});
  run.open_model();
  run.read_texts();
  const auto last = static_cast<std::int64_t>(run.documents().size()) - 1;
  const auto document = options.count("window-index", 0, last);
  const std::vector<std::int32_t>& tokens = run.documents()[document];
  const auto layers = chosen_layers(options, run.config());
  run.load();
  run.print_estimate({.flops = forward_flops(run.config(), static_cast<double>(tokens.size())),
                      .memory_bytes = session_memory(run.session(), tokens.size())});
  LiveSource states(run.decoder(), {tokens});
  const TokenScoresResult result = scores_result({.head = run.result_head("kvspectrum-scores", tokens.size()),
                                                  .document = document,
                                                  .window = tokens.size(),
                                                  .sinks = lagkv.sinks,
                                                  .lag = lagkv.lag,
                                                  .ratio = lagkv.ratio,
                                                  .variant = options.text("variant"),
                                                  .layers = layers},
                                                 score_tokens(states, 0, layers, lagkv));
  run.finish(to_json(result), to_text(result), [&] {
    return RunFigures{{"", token_score_chart(result.heading(), result, ScoreRows::kHeads)}};
  });
}

}  // namespace

const Subcommand kScoresCommand{"scores", scores_options, run_scores};

}  // namespace kvs::inline cli
