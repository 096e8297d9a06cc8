#include "calibrate/faedkv/retained_chunks.h"

#include "calibrate/config/config.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Returns the parameters of a faedkv config that an ablation uses, including defaults. @throws Error kUnsupported if
/// layers differ, as an ablation filters all layers equally
Json settings_of_all_layers(const Json& config, const std::filesystem::path& path) {
  const Json& model = config.at("model");
  const std::string where = path.string() + ": /parameters/";
  Parameters reader({{config.at("parameters"), where, ErrorCode::kInput}}, model.at("layers").get<std::size_t>());
  (void)make_cache(
      kFaedkvMethod, reader,
      {.kv_heads = model.at("kv_heads").get<std::size_t>(), .head_dim = model.at("head_dim").get<std::size_t>()});
  Json settings = reader.resolved();
  for (const char* const name : {"sinks", "recent", "transform", "spectrum", "key_space"})
    if (settings.at(name).is_array())
      throw Error(ErrorCode::kUnsupported, where + name, "found a list by layer, expected one value for all layers");
  return settings;
}

}  // namespace

void retain_chunks_of(const std::filesystem::path& path, const ModelSource& source, RetentionPlan& plan) {
  const Json config = read_config(path);
  if (config.at("method") != "faedkv" || !config.contains("/calibration/ablation/delta"_json_pointer))
    throw Error(ErrorCode::kInput, path.string(),
                "found a config of " + config.at("method").get<std::string>() +
                    ", expected one that kvcalibrate faedkv wrote, with its ablation");
  check_config_model(config, path, source);
  const Json parameters = settings_of_all_layers(config, path);
  AblationSetup& setup = plan.setup;
  setup.sinks = setup.continuation ? parameters.at("sinks").get<std::size_t>() : 0;
  setup.recent = setup.continuation ? parameters.at("recent").get<std::size_t>() : 0;
  setup.transform = parameters.at("transform") == "dct" ? Transform::kDct : Transform::kDft;
  setup.before_rope = parameters.at("key_space") == "k_pre";
  const Json& ablation = config.at("calibration").at("ablation");
  plan.layers = ablation.at("layers").get<std::vector<std::size_t>>();
  plan.chunks = {{setup.transform, parameters.at("spectrum") == "full", ablation.at("chunks").get<std::size_t>(),
                  setup.filtered()},
                 ablation.at("delta").get<std::vector<std::vector<double>>>()};
  if (plan.chunks->grid.chunks > plan.chunks->grid.bins())
    throw Error(ErrorCode::kUsage, "--window",
                "found " + std::to_string(setup.filtered()) + " filtered tokens, expected a bin for each of the " +
                    std::to_string(plan.chunks->grid.chunks) + " chunks of " + path.string());
}

}  // namespace kvs::inline calibrate
