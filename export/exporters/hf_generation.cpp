// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/hf_generation.h"

#include <algorithm>

#include "core/error.h"
#include "export/exporters/engine_types.h"
#include "export/exporters/hf_folder.h"
#include "io/file.h"
#include "io/python_json.h"
#include "io/staged_output.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

Json generation_config(const ModelSource& model) {
  const std::filesystem::path path = model.path() / "generation_config.json";
  if (model.format() == ModelFormat::kGguf || !std::filesystem::exists(path)) return special_ids(model);
  Json config = parse_python_json(read_text_file(path, kMaxConfigBytes), path.string());
  if (!config.is_object())
    throw Error(ErrorCode::kInput, path.string(), "found " + describe_json(config) + ", expected an object");
  return config;
}

Json quanto(const ExportJob& job) {
  const Json parameters = resolved_parameters(job);
  for (const char* name : {"bits", "group", "residual"})
    if (parameters.at(name).is_array())
      refuse_parameter(job, name, "found another for each layer, expected one: Transformers has one for all of them");
  if (parameters.at("layers").size() != job.model.config().layers())
    refuse_parameter(job, "layers", "found some layers, expected all: Transformers quantises all of them");
  return {
      {"backend", "quanto"}, {"nbits", parameters.at("bits")},         {"axis_key", 0},
      {"axis_value", 0},     {"q_group_size", parameters.at("group")}, {"residual_length", parameters.at("residual")}};
}

Json fp8(const ExportJob& job) {
  const EngineTypes types = one_kv_type(job, "Transformers");
  for (const auto& [name, kind] : {std::pair("type_k", types.k), std::pair("type_v", types.v)})
    if (kind != "fp8") refuse_parameter(job, name, "found " + kind + ", expected fp8, or a config of the method kivi");
  return {{"backend", "fp8"}};
}

}  // namespace

std::string quantized_cache_obstacle(const ModelConfig& model) {
  if (!model.has_windows()) return {};
  return "found sliding windows, expected full attention in all layers: QuantizedCache has no other";
}

Json write_hf_generation(const ExportJob& job) {
  const auto method = job.config.at("method").get<std::string>();
  if (method != "kivi" && method != "full")
    throw Error(ErrorCode::kUnsupported, job.config_path.string() + ": /method",
                "found " + method + ", expected kivi, or full with type=fp8: what Transformers has itself");
  Json config = generation_config(job.model), notes = Json::array();
  config["cache_implementation"] = "quantized";
  config["cache_config"] = method == "kivi" ? quanto(job) : fp8(job);
  if (method == "kivi")
    notes.push_back(
        "Transformers' quanto is not KIVI: its groups of keys are runs of one token's channels, and a prompt is "
        "quantised whole; its loss is another one, with 2 bits a much larger one");
  else
    notes.push_back("Transformers' fp8 takes its own scales from the first tokens: those of the config are not used");
  write_staged(job.out, dump_python_json(config) + "\n");
  return {{"settings", config.at("cache_config")}, {"notes", notes}};
}

}  // namespace kvs::inline exporting
