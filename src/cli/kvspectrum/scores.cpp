#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "calibrate/lagkv/token_score_map.h"
#include "calibrate/lagkv/token_scores.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "run/run.h"
#include "states/live_source.h"

namespace kvs {
namespace {

constexpr std::array<std::string_view, 2> kVariants{"lag", "local"};
constexpr std::int64_t kMaxTokens = 1 << 24;  // score_tokens() says what does not fit in a document

LagkvOptions lagkv_options(const Options& options) {
  LagkvOptions lagkv;
  lagkv.sinks = static_cast<std::size_t>(options.integer("sinks", 0, kMaxTokens));
  lagkv.lag = static_cast<std::size_t>(options.integer("lag", 1, kMaxTokens));
  lagkv.ratio = options.real("ratio", 0, 1);
  lagkv.variant = static_cast<LagkvVariant>(std::ranges::find(kVariants, options.text("variant")) - kVariants.begin());
  if (lagkv.kept() == 0)
    throw Error(ErrorCode::kUsage, "--ratio",
                "found " + options.text("ratio") + ", which keeps none of " + std::to_string(lagkv.lag) +
                    " tokens, expected one that keeps some");
  return lagkv;
}

OptionTable scores_options() {
  OptionTable table("kvspectrum scores --model PATH --text PATH --out FILE [options]",
                    "LagKV's scores of a document's tokens, and which of them it keeps, by layer and KV head.",
                    {"kvspectrum scores --model SmolLM2.gguf --text book.txt --lag 64 --ratio 0.25 --out scores.json"});
  table.value("out", "FILE", "the JSON result; the figure goes beside it")
      .required()
      .value("document", "N", "which of the text's windows", "0")
      .from(0)
      .value("sinks", "S", "first tokens, which always stay", "16")
      .from(0, kMaxTokens)
      .value("lag", "L", "tokens of a partition", "128")
      .from(1, kMaxTokens)
      .value("ratio", "SHARE", "of a partition's tokens that stay", "0.25")
      .value("variant", "lag|local", "states are scaled by the next partition's range or by their own", "lag")
      .value("layers", "LAYERS", "such as 0,14-16", "all")
      .check([](const Options& options) { (void)lagkv_options(options); });
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, false);
  return table;
}

Json result_json(const TokenScores& scores, const LagkvOptions& lagkv, const std::vector<std::size_t>& layers) {
  constexpr double kDigits = 1e4;  // a figure's worth of them
  Json relative = Json::array(), kept = Json::array(), overlap = Json::array();
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    Json& layer_scores = relative.emplace_back(Json::array());
    Json& layer_kept = kept.emplace_back(Json::array());
    for (std::size_t head = 0; head < scores.heads; ++head) {
      Json& row = layer_scores.emplace_back(Json::array());
      for (const double score : scores.row(layer, head)) row.push_back(std::round(score * kDigits) / kDigits);
      Json& positions = layer_kept.emplace_back(Json::array());
      for (std::size_t token = 0; token < scores.tokens; ++token)
        if (scores.is_kept(layer, head, token)) positions.push_back(scores.first + token);
    }
    overlap.push_back(head_overlap(scores, layer));
  }
  return {{"method", "lagkv"},
          {"sinks", lagkv.sinks},
          {"lag", lagkv.lag},
          {"ratio", lagkv.ratio},
          {"variant", kVariants[static_cast<std::size_t>(lagkv.variant)]},
          {"layers", layers},
          {"first_token", scores.first},
          {"tokens_scored", scores.tokens},
          {"relative_score", relative},
          {"kept", kept},
          {"head_overlap", overlap}};
}

std::string summary(const TokenScores& scores, const LagkvOptions& lagkv, std::size_t layers) {
  double overlap = 0;
  for (std::size_t layer = 0; layer < layers; ++layer) overlap += head_overlap(scores, layer);
  std::ostringstream text;
  text.precision(3);
  text << "scores: " << lagkv.kept() << " of every " << lagkv.lag << " tokens stay, of tokens " << scores.first
       << " to " << scores.first + scores.tokens - 1 << "; a KV head shares "
       << 100 * overlap / static_cast<double>(layers) << " % of what it keeps with another of its layer (chance: "
       << 100 * static_cast<double>(lagkv.kept()) / static_cast<double>(lagkv.lag) << " %)\n";
  return text.str();
}

std::string heading(const Run& run, const LagkvOptions& lagkv, std::size_t document, std::size_t tokens) {
  std::ostringstream text;
  text << run.config().name << " · LagKV, L = " << lagkv.lag << ", r = " << lagkv.ratio << " ("
       << run.options().text("variant") << ") · document " << document << ", " << tokens << " tokens";
  return text.str();
}

}  // namespace

void run_scores(Arguments arguments) {
  const auto options = scores_options().parse(arguments, std::cout);
  if (!options) return;
  const LagkvOptions lagkv = lagkv_options(*options);
  const std::filesystem::path out = options->text("out");
  Run run(*options);
  run.take_outputs({.main = out, .others = figure_paths(out, "")});
  run.open_model();
  run.read_texts();
  const auto last = static_cast<std::int64_t>(run.documents().size()) - 1;
  const auto document = static_cast<std::size_t>(options->integer("document", 0, last));
  const std::vector<std::int32_t>& tokens = run.documents()[document];
  const auto layers = options->indices("layers", run.config().layers);
  run.load();
  run.print_estimate({.flops = forward_flops(run.config(), static_cast<double>(tokens.size())),
                      .memory_bytes = session_memory(run.session(), tokens.size())});
  LiveSource states(run.decoder(), {tokens});
  const TokenScores scores = score_tokens(states, 0, layers, lagkv);

  Json result = to_json(run.result_head("kvspectrum-scores", tokens.size()));
  result.update(Json{{"document", document}, {"window", tokens.size()}});
  result.update(result_json(scores, lagkv, layers));
  run.finish(result, summary(scores, lagkv, layers.size()), [&] {
    return RunFigures{
        {"", token_score_chart(heading(run, lagkv, document, tokens.size()), token_score_map(scores, layers),
                               "layer (its KV heads below each other)")}};
  });
}

}  // namespace kvs
