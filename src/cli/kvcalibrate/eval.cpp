#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "calibrate/paired_difference.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/evaluation.h"
#include "export/config.h"
#include "io/file.h"

namespace kvs {
namespace {

constexpr double kBytesPerValue = 2;  // sizes are stated for 16-bit caches

OptionTable eval_options() {
  OptionTable table(
      "kvcalibrate eval --model PATH --text PATH (--config FILE | --method NAME [--set NAME=VALUE …]) [options]",
      "Runs texts with a cache at work: perplexity, cache bytes, and how far predictions are from the full cache's.\n" +
          cache_method_lines(),
      {"kvcalibrate eval --model SmolLM2.gguf --text book.txt --method freqkv --set cache_size=256 gamma=0.5",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --window 512 --windows -4: --method full",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --method lagkv --set ratio=0.5 --save-config lagkv.json",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --config elitekv.json --json"});
  add_cache_options(table);
  table.value("against", "full|none", "none: no second pass with the full cache to compare with", "full")
      .value("out", "FILE", "also write the JSON result here")
      .value("save-config", "FILE", "write the method with all of its parameters as a config, for --config");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, false);
  return table;
}

/// Of the full cache after `tokens` tokens, 2 bytes a value.
double full_bytes(const ModelConfig& config, std::size_t tokens) {
  return kBytesPerValue * static_cast<double>(config.cached_tokens(tokens) * 2 * config.kv_heads * config.head_dim);
}

/// What an evaluation adds to the JSON result, and to the text.
void report_cache(const Evaluation& evaluation, const CacheChoice& choice, std::size_t window, Json& result) {
  const auto tokens = static_cast<double>(window);
  const CacheReport& cache = evaluation.cache;
  if (choice.method != nullptr) result["parameters"] = choice.given();
  result["bytes_per_token_end"] = static_cast<double>(cache.end.stored) / tokens;
  result["bytes_allocated"] = cache.peak.used + cache.peak.spare;
  result["bytes_spare"] = cache.peak.spare;
  result["compressions"] = cache.compressions;
  result["seconds"] = cache.seconds;
  result["tokens_per_second"] = static_cast<double>(evaluation.tokens) / cache.seconds;
  if (!evaluation.full) return;
  const auto& [sum, divergence, seconds] = *evaluation.full;
  const auto documents = static_cast<double>(sum.per_document.size());
  std::vector<double> differences;
  for (std::size_t n = 0; n < sum.per_document.size(); ++n)
    differences.push_back((evaluation.sum.per_document[n] - sum.per_document[n]) * documents /
                          static_cast<double>(sum.scored));
  const PairedDifference difference = paired_difference(differences);
  result["full"] = {{"ppl", sum.perplexity()}, {"seconds", seconds}};
  result["ratio"] = {{"ppl", evaluation.sum.perplexity() / sum.perplexity()}};
  if (difference.interval)
    result["ratio"]["interval"] = {1 + difference.interval->first, 1 + difference.interval->second};
  result["kl"] = divergence.kl / static_cast<double>(divergence.tokens);
  result["top1"] = static_cast<double>(divergence.agreed) / static_cast<double>(divergence.tokens);
}

/// Checks the outputs that the options name before any work.
void check_eval_outputs(const Options& options, const RunOptions& run) {
  std::vector<std::filesystem::path> outputs;
  for (const char* name : {"out", "save-config"})
    if (options.has(name)) outputs.emplace_back(options.text(name));
  if (!outputs.empty()) check_outputs(outputs.front(), std::span(outputs).subspan(1), options, run);
}

/// The config of --save-config. Its `quality` is what `result` measured.
Json config_of(const CacheChoice& choice, const ModelSession& session, const Provenance& record, const Json& result) {
  Json quality{{"text", "evaluated documents"}, {"ppl", result.at("ppl")}};
  if (result.contains("full")) quality["ppl_full"] = result.at("full").at("ppl");
  quality["bytes_per_token"] = result.at("bytes_per_token");
  return make_config(choice.name, session.config(), session.source->sha256(), choice.resolved(session.config()),
                     Json::object(), record, quality, {});
}

std::string summary(const Json& result) {
  std::ostringstream text;
  text << result.at("method").get<std::string>() << ": perplexity " << result.at("ppl").get<double>() << " over "
       << result.at("tokens_scored").get<std::size_t>() << " tokens, " << result.at("bytes_per_token").get<double>()
       << " cache bytes per token (" << 100 * result.at("bytes_ratio").get<double>() << " % of the full cache)\n";
  if (!result.contains("kl")) return text.str();
  text << "  against the full cache: perplexity × " << result.at("ratio").at("ppl").get<double>();
  if (const Json& ratio = result.at("ratio"); ratio.contains("interval"))
    text << " (95 % " << ratio.at("interval")[0].get<double>() << " to " << ratio.at("interval")[1].get<double>()
         << ")";
  text << ", KL divergence " << result.at("kl").get<double>() << " nats, same first choice in "
       << 100 * result.at("top1").get<double>() << " % of tokens\n";
  return text.str();
}

}  // namespace

void run_eval(Arguments arguments) {
  const auto options = eval_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  check_eval_outputs(*options, run);
  auto source = open_model(*options);
  const CacheChoice choice = choose_cache(*options, *source);
  if (options->has("save-config") && choice.method == nullptr)
    throw Error(ErrorCode::kUsage, "--save-config", "found together with a config of factors, expected --method");
  const Corpus corpus = load_corpus(*options, run, *source);
  const auto documents = tokens_of(corpus);
  const std::size_t tokens = documents.front().size();
  ModelSession session = load_model(std::move(source), *options, run);
  const ModelConfig& config = session.config();
  const bool compare = choice.name != "full" && options->text("against") == "full";
  announce({.flops = (compare ? 2 : 1) * static_cast<double>(documents.size()) *
                     forward_flops(config, static_cast<double>(tokens)),
            // The cache's rows are f32 and their buffers double.
            .memory_bytes = session_memory(session, tokens) + 4 * full_bytes(config, tokens)},
           *session.backend, run);

  Progress progress("eval", static_cast<double>(documents.size()), run.quiet);
  const auto done = [&](std::size_t count) { progress.update(static_cast<double>(count)); };
  const Evaluation evaluation =
      evaluate(*session.decoder, documents, cache_maker(choice, session, tokens), compare, done);
  const double bytes = static_cast<double>(evaluation.cache.peak.stored) / static_cast<double>(tokens);
  const PerplexitySum& sum = evaluation.sum;
  const Provenance record = provenance(*options, run, corpus);
  Json result{
      {"method", choice.name},    {"ppl", sum.perplexity()},
      {"nll_mean", sum.mean()},   {"tokens_scored", sum.scored},
      {"bytes_per_token", bytes}, {"bytes_ratio", bytes * static_cast<double>(tokens) / full_bytes(config, tokens)}};
  report_cache(evaluation, choice, tokens, result);
  result.update(Json{{"documents", documents.size()},
                     {"window", tokens},
                     {"dtype", name_of(session.backend->compute_type())},
                     {"model", model_json(config, session.source->sha256(), tokens)},
                     {"text_sha256", record.text_sha256},
                     {"command", record.command},
                     {"tool_version", record.tool_version}});
  if (options->has("out")) write_file_atomically(options->text("out"), dump_json(result) + "\n", run.force);
  if (options->has("save-config"))
    write_file_atomically(options->text("save-config"), dump_json(config_of(choice, session, record, result)) + "\n",
                          run.force);
  print_result(run, result, summary(result));
}

}  // namespace kvs
