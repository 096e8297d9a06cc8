// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/retained_chunks.h"

#include <optional>
#include <tuple>
#include <utility>

#include "calibrate/config/config.h"
#include "calibrate/faedkv/cache.h"
#include "core/error.h"
#include "results/ablation.h"

namespace kvs::inline calibrate {
namespace {

/// Returns the options of a config for an ablation, which filters all layers equally.
/// @throws Error kUnsupported if layers differ
FaedkvOptions options_of_all_layers(const Json& config, const std::string& where) {
  Parameters reader({{config.at("parameters"), where + "/", ErrorCode::kInput}}, recorded_shape(config));
  const auto filter = [](const FaedkvOptions& of) {
    return std::tuple(of.sinks, of.recent, of.transform, of.full_spectrum, of.before_rope);
  };
  std::optional<FaedkvOptions> all;
  for (std::size_t layer = 0; layer < reader.layers(); ++layer) {
    if (!reader.select(layer)) continue;
    FaedkvOptions options = faedkv_options(reader);
    if (!all)
      all = std::move(options);
    else if (filter(*all) != filter(options))
      throw Error(ErrorCode::kUnsupported, where,
                  "found layers of different sinks, recent, transform, spectrum or key_space, expected equal ones");
  }
  return *all;
}

}  // namespace

void retain_chunks_of(const std::filesystem::path& path, const ModelSource& source, RetentionPlan& plan) {
  const Json config = read_config(path);
  if (config.at("method") != "faedkv" || !config.contains("/calibration/ablation/delta"_json_pointer))
    throw Error(ErrorCode::kInput, path.string(),
                "found a config of " + config.at("method").get<std::string>() +
                    ", expected one that kvcalibrate faedkv wrote, with its ablation");
  check_config_model(config, path, source);
  const FaedkvOptions options = options_of_all_layers(config, path.string() + ": /parameters");
  AblationSetup& setup = plan.setup;
  setup.sinks = setup.continuation ? options.sinks : 0;
  setup.recent = setup.continuation ? options.recent : 0;
  setup.transform = options.transform;
  setup.before_rope = options.before_rope;
  const auto ablation = from_json<AblationResult>(JsonCursor(config, path.string()).at("calibration").at("ablation"));
  plan.layers = ablation.layers;
  plan.chunks = {{setup.transform, options.full_spectrum, ablation.chunks, setup.filtered()}, ablation.delta};
  if (plan.chunks->grid.chunks > plan.chunks->grid.bins())
    throw Error(ErrorCode::kUsage, "--window",
                "found " + std::to_string(setup.filtered()) + " filtered tokens, expected a bin for each of the " +
                    std::to_string(plan.chunks->grid.chunks) + " chunks of " + path.string());
}

}  // namespace kvs::inline calibrate
