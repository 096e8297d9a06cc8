// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cache_choice.h"
#include "calibrate/common/measured_quality.h"
#include "calibrate/common/settings_check.h"
#include "calibrate/method_help.h"
#include "calibrate/oscar/caches.h"
#include "calibrate/oscar/config_file.h"
#include "calibrate/oscar/target_sums.h"
#include "cli/kvcalibrate/commands.h"
#include "model/cache_shape.h"
#include "results/comparison_words.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/document_sums.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

/// Options that are parameters of the cache, and their names there.
constexpr std::pair<const char*, const char*> kOscarParameters[] = {
    {"sinks", "sinks"}, {"recent", "recent"}, {"group", "group"}, {"clip-k", "clip_k"}, {"clip-v", "clip_v"}};

OptionTable oscar_options_table() {
  OptionTable table(
      "kvcalibrate oscar --model PATH --text PATH --out FILE [options]",
      "Finds the rotations of OSCAR from a text: eigenvectors of the covariances of queries and of the attention's "
      "outputs, by layer and KV head. The config is that of a cache that stores rotated keys and values in 2 "
      "bits.\n\n" +
          method_help(kOscarMethod),
      {"kvcalibrate oscar --model SmolLM2.gguf --text book.txt --window 512 --documents 16 --recent 128 "
       "--out oscar.json"});
  table.value("out", "FILE", "the config to write; its tensors are written next to it")
      .required()
      .value("sinks", "N", "first tokens, which stay in 16 bits", "64")
      .value("recent", "N", "last tokens, which stay in 16 bits", "256")
      .value("group", "N", "values that share a scale and a minimum, at most those of a head", "128")
      .value("clip-k", "SHARE", "quantile of the magnitudes of a key that it is clipped to; 1: no clipping", "0.96")
      .value("clip-v", "SHARE", "quantile of the magnitudes of a value that it is clipped to; 1: no clipping", "0.92");
  add_model_run_options(table, true);
  return table;
}

/// Returns all parameters of the cache that the options ask for. @throws Error kUsage
Json oscar_settings(const Options& options, const ModelConfig& model) {
  Json settings = Json::object();
  for (const auto& [option, name] : kOscarParameters)
    settings[name] =
        std::string_view(option).starts_with("clip") ? Json(options.share(option)) : Json(options.count(option));
  return CacheChoice{.method = &kOscarMethod, .parameters = {{std::move(settings), "--", ErrorCode::kUsage}}}.resolved(
      model);
}

std::string oscar_summary(const std::vector<OscarRotations>& layers, std::size_t tokens) {
  return "rotations of " + std::to_string(layers.size()) + " layers; " +
         shared_bytes_text(shared_bytes(layers), tokens) + '\n';
}

void run_oscar(const Options& options) {
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs(config_with_tensors(out));
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const ModelConfig& model = run.config();
  refuse_obstacle(obstacle_of(kOscarMethod, model), "kvcalibrate oscar", model);
  const Json settings = oscar_settings(options, model);
  run.load();
  OscarSums sums(run.model());
  run.print_estimate(
      {.flops = static_cast<double>(run.documents().size()) * forward_flops(model, static_cast<double>(run.tokens())),
       .memory_bytes = session_memory(run.session(), run.tokens()) + oscar_memory(model)});
  LiveSource source(run.decoder(), run.documents());
  PhaseProgress progress(run.quiet());
  add_remaining_documents(sums, source, run.saved_state(), run.checkpoint(),
                          progress.counter("oscar: covariances", source.documents()));
  const auto ops = make_calibration_ops(run.backend());
  const std::vector<OscarRotations> layers = sums.rotations(*ops);
  const Parameters parameters({{settings, "", ErrorCode::kUsage}}, cache_shape(model));
  const MeasuredQuality quality =
      measured_quality(oscar_caches(run.backend(), model, parameters, layers), run.decoder(), run.documents(),
                       progress.counter("quality", std::min(kQualityDocuments, run.documents().size())));
  const Json config = write_oscar_config(layers, run.model(), settings, run.provenance(), out, run.settings().replace(),
                                         to_json(quality));
  run.remove_state();
  run.print(config, out.string() + ": " + oscar_summary(layers, run.tokens()) + summary_line(quality));
}

}  // namespace

const Subcommand kOscarCommand{"oscar", oscar_options_table, run_oscar};

}  // namespace kvs::inline cli
