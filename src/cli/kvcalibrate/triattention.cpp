// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cache_choice.h"
#include "calibrate/common/settings_check.h"
#include "calibrate/method_help.h"
#include "calibrate/triattention/config_file.h"
#include "calibrate/triattention/query_sums.h"
#include "cli/kvcalibrate/commands.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/document_sums.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

OptionTable triattention_options_table() {
  OptionTable table(
      "kvcalibrate triattention --model PATH --text PATH --set cache_size=N --out FILE [options]",
      "Averages the queries of a text before RoPE, by layer and head. The config is that of a cache that drops the "
      "tokens that such queries would read least.\n\n" +
          method_help(kTriattentionMethod),
      {"kvcalibrate triattention --model SmolLM2.gguf --text book.txt --documents 16 --set cache_size=256 "
       "--set interval=32 --out tri.json"});
  table.value("out", "FILE", "the config to write; its tensors are written next to it")
      .required()
      .list("set", "NAME=VALUE", "parameters of the cache; may repeat");
  add_model_run_options(table, true);
  table.check([](const Options& options) {
    const Json settings = parse_settings(options.list("set"), "--set");
    check_settings(kTriattentionMethod, settings, "--set");
    check_complete(kTriattentionMethod, settings, "--set");
  });
  return table;
}

/// Returns all parameters of the cache that --set asks for. @throws Error kUsage
Json resolved_settings(const Options& options, const ModelConfig& model) {
  const CacheChoice choice{.method = &kTriattentionMethod,
                           .parameters = {{parse_settings(options.list("set"), "--set"), "--set ", ErrorCode::kUsage}}};
  return choice.resolved(model);
}

void run_triattention(const Options& options) {
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs(config_with_tensors(out));
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const ModelConfig& model = run.config();
  refuse_obstacle(obstacle_of(kTriattentionMethod, model), "kvcalibrate triattention", model);
  Json parameters = resolved_settings(options, model);
  QuerySums sums(model);
  run.load();
  run.print_estimate(
      {.flops = static_cast<double>(run.documents().size()) * forward_flops(model, static_cast<double>(run.tokens())),
       .memory_bytes = session_memory(run.session(), run.tokens())});
  LiveSource source(run.decoder(), run.documents());
  Progress progress("triattention", source.documents(), run.quiet());
  add_remaining_documents(sums, source, run.saved_state(), run.checkpoint(), progress.counter());
  const std::vector<QueryStatistics> layers = sums.statistics();
  const Json config = write_triattention_config(layers, run.model(), std::move(parameters), run.provenance(), out,
                                                run.settings().replace());
  run.remove_state();
  run.print(config, out.string() + ": " + triattention_summary(layers));
}

}  // namespace

const Subcommand kTriattentionCommand{"triattention", triattention_options_table, run_triattention};

}  // namespace kvs::inline cli
