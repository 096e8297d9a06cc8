// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/sglang_scales.h"

#include "core/error.h"
#include "export/exporters/engine_types.h"
#include "export/exporters/hf_folder.h"
#include "export/exporters/scaled_layers.h"
#include "io/file.h"
#include "io/python_json.h"
#include "io/staged_output.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

/// Returns model_type of config.json, with which SGLang compares the file: that of the text model in a composite.
std::string model_type_of(const ModelSource& model) {
  const std::filesystem::path path = model.path() / "config.json";
  const Json config = parse_python_json(read_text_file(path, kMaxConfigBytes), path.string());
  const JsonCursor root(config, path.string());
  const bool composite = root.has("text_config") && root.at("text_config").has("model_type");
  return (composite ? root.at("text_config") : root).at("model_type").string();
}

/// Returns {layer: scale}. @throws Error kUnsupported if SGLang cannot express the config
Json scales_by_layer(const ExportJob& job) {
  const ScaledLayers found = fp8_layers_of(job);
  if (!found.skipped.empty())
    refuse_parameter(job, "type_skip_layers",
                     "found layer " + std::to_string(found.skipped.front()) +
                         " at 16 bits, expected fp8 in all: SGLang has one type for all layers");
  Json scales = Json::object();
  for (std::size_t layer = 0; layer < job.model.config().layers(); ++layer) scales[std::to_string(layer)] = 1.0;
  for (const auto& [index, kind, k, v] : found.layers) {
    if (k.size() > 1) refuse_parameter(job, "scale_k", "found scales by head, expected one for each layer");
    if (k != v)
      refuse_parameter(job, "scale_v",
                       "found another than of keys in layer " + std::to_string(index) +
                           ", expected one scale for both (kvcalibrate store --per pair)");
    scales[std::to_string(index)] = static_cast<double>(k.front());
  }
  return scales;
}

}  // namespace

Json write_sglang_scales(const ExportJob& job) {
  if (job.model.format() == ModelFormat::kGguf)
    throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                "found a GGUF file, expected a Hugging Face folder, whose model_type the file states");
  const Json scales = scales_by_layer(job);
  Json by_rank = Json::object();
  for (std::size_t rank = 0; rank < job.tensor_parallel; ++rank) by_rank[std::to_string(rank)] = scales;
  const Json file{{"model_type", model_type_of(job.model)},
                  {"kv_cache", {{"dtype", "float8_e4m3fn"}, {"scaling_factor", by_rank}}}};
  write_staged(job.out, dump_json(file) + "\n");
  return {{"settings", "--kv-cache-dtype fp8_e4m3 --quantization-param-path FILE"},
          {"notes",
           {"flags of SGLang: --kv-cache-dtype fp8_e4m3 --quantization-param-path FILE; some of its models ignore the "
            "scales and say so in the log"}}};
}

}  // namespace kvs::inline exporting
