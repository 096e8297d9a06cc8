#include <filesystem>
#include <iostream>
#include <sstream>

#include "cli/common/estimate.h"
#include "cli/common/methods.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/elite_config.h"
#include "eval/perplexity.h"
#include "export/config.h"
#include "io/file.h"

namespace kvs {
namespace {

constexpr double kBytesPerReal = 2;  // sizes are stated for 16-bit caches

OptionTable eval_options() {
  OptionTable table("kvcalibrate eval --model PATH --text PATH [--config FILE | --method full] [options]",
                    "Perplexity on the given windows and cache bytes per token, for the full cache or for a config.",
                    {"kvcalibrate eval --model SmolLM2.gguf --text book.txt --window 512 --windows -4: --method full",
                     "kvcalibrate eval --model SmolLM2.gguf --text book.txt --config elitekv.json --json"});
  table.value("config", "FILE", "a config made by kvcalibrate (elitekv)")
      .value("method", "NAME", "full")
      .value("out", "FILE", "also write the JSON result here");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, false);
  return table;
}

/// The method's name and, for a config, its layers.
struct Method {
  std::string name = "full";
  EliteConfig elite;
};

Method choose_method(const Options& options, const ModelSource& source) {
  if (options.has("config") == options.has("method"))
    throw Error(ErrorCode::kUsage, "--config", "expected either --config or --method");
  Method method;
  if (options.has("method")) {
    static constexpr std::string_view kMethods[] = {"full"};
    method.name = options.choice("method", kMethods);
    method.elite.cache_reals_per_token = static_cast<double>(source.config().cache_reals_per_token());
    return method;
  }
  const std::filesystem::path path = options.text("config");
  const Json config = read_config(path);
  check_config_model(config, path, source.config(), source.sha256());
  method.name = config.at("method").get<std::string>();
  if (method.name != "elitekv")
    throw Error(ErrorCode::kUnsupported, path.string() + ": /method", "found " + method.name + ", expected elitekv");
  require_method(config.at("files").empty() ? MethodId::kEvalElite : MethodId::kFactors, source.config());
  method.elite = load_elite_config(config, path, source);
  return method;
}

}  // namespace

void run_eval(Arguments arguments) {
  const auto options = eval_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  if (options->has("out")) check_outputs(options->text("out"), {}, *options, run);
  auto source = open_model(*options);
  Method method = choose_method(*options, *source);
  const Corpus corpus = load_corpus(*options, run, *source);
  const auto documents = tokens_of(corpus);
  const std::size_t tokens = documents.front().size();
  ModelSession session = load_model(std::move(source), *options, run);
  announce(
      {.flops = static_cast<double>(documents.size()) * forward_flops(session.config(), static_cast<double>(tokens)),
       .memory_bytes = session_memory(session, tokens)},
      *session.backend, run);

  std::unique_ptr<EliteModel> hook;
  if (!method.elite.layers.empty()) hook = std::make_unique<EliteModel>(*session.model, std::move(method.elite.layers));
  Progress progress("eval", static_cast<double>(documents.size()), run.quiet);
  const PerplexitySum sum = measure_perplexity(*session.decoder, documents, hook.get(),
                                               [&](std::size_t done) { progress.update(static_cast<double>(done)); });
  const double bytes = kBytesPerReal * method.elite.cache_reals_per_token;
  const double full = kBytesPerReal * static_cast<double>(session.config().cache_reals_per_token());
  const Provenance record = provenance(*options, run, corpus);
  const Json result{{"method", method.name},
                    {"ppl", sum.perplexity()},
                    {"nll_mean", sum.mean()},
                    {"tokens_scored", sum.scored},
                    {"bytes_per_token", bytes},
                    {"bytes_ratio", bytes / full},
                    {"documents", documents.size()},
                    {"window", tokens},
                    {"dtype", name_of(session.backend->compute_type())},
                    {"model", model_json(session.config(), session.source->sha256(), tokens)},
                    {"text_sha256", record.text_sha256},
                    {"command", record.command},
                    {"tool_version", record.tool_version}};
  if (options->has("out")) write_file_atomically(options->text("out"), dump_json(result) + "\n", run.force);
  std::ostringstream text;
  text << method.name << ": perplexity " << sum.perplexity() << " over " << sum.scored << " tokens, " << bytes
       << " cache bytes per token (" << 100 * bytes / full << " % of the full cache)\n";
  print_result(run, result, text.str());
}

}  // namespace kvs
