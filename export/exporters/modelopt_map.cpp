// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/modelopt_map.h"

#include "export/engines/engines.h"
#include "export/exporters/engine_types.h"
#include "export/exporters/scale_files.h"
#include "export/exporters/scaled_checkpoint.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

/// Returns kv_cache_quantized_layers: the algorithm of each layer that is not at 16 bits, by its attention module.
Json map_of(const ExportJob& job, const ScaledLayers& layers) {
  Json map = Json::object();
  for (const ScaledLayers::Layer& layer : layers.layers)
    map[attention_module(job, layer.index)] = {{"quant_algo", layer.kind == RowKind::kE4m3 ? "FP8" : "NVFP4"}};
  return map;
}

}  // namespace

Json write_modelopt_map(const ExportJob& job) {
  check_scaled_checkpoint(job.model);
  refuse_for_engine(job, kVllmModelOpt);
  const ScaledLayers layers = map_layers_of(job);
  const CacheScheme scheme = with_layer_map(job.model.path(), map_of(job, layers), layers.are_alike());
  write_scaled_checkpoint(job, layers, modelopt_scale_tensors(job, layers), scheme);
  Json notes =
      Json::array({"vLLM reads the map with --kv-cache-dtype auto once its pull request 56116 is in it; older "
                   "versions refuse the checkpoint"});
  if (job.overlay) notes.push_back("`kvcalibrate overlay apply` puts these files into the model's folder");
  return {{"settings", scheme.scheme}, {"notes", notes}};
}

}  // namespace kvs::inline exporting
