#include "export/config.h"

#include "core/error.h"

namespace kvs {

Json model_json(const ModelConfig& model, const std::string& sha256) {
  return {{"name", model.name},
          {"sha256", sha256},
          {"architecture", model.architecture},
          {"layers", model.layers},
          {"query_heads", model.query_heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"rope",
           {{"theta", model.rope_theta},
            {"scaling", parse_json(model.rope_scaling, "rope scaling")},
            {"pairing", "rotate-half"}}}};
}

Json make_config(const std::string& method, const ModelConfig& model, const std::string& model_sha256, Json parameters,
                 Json calibration, const Provenance& provenance, Json quality, std::span<const ConfigFile> files) {
  calibration["command"] = provenance.command;
  calibration["tool_version"] = provenance.tool_version;
  calibration["text_sha256"] = provenance.text_sha256;
  calibration["documents"] = provenance.documents;
  calibration["tokens"] = provenance.tokens;
  calibration["seed"] = provenance.seed;
  Json list = Json::array();
  for (const ConfigFile& file : files) list.push_back({{"path", file.name}, {"sha256", file.sha256}});
  return {{"format", "kvspectrum-config"},
          {"version", 1},
          {"method", method},
          {"model", model_json(model, model_sha256)},
          {"parameters", std::move(parameters)},
          {"calibration", std::move(calibration)},
          {"quality", std::move(quality)},
          {"files", std::move(list)}};
}

void check_config_model(const Json& config, const std::filesystem::path& path, const ModelConfig& model,
                        const std::string& model_sha256) {
  const Json expected = model_json(model, model_sha256);
  std::string differences;
  for (const char* field : {"sha256", "architecture", "layers", "query_heads", "kv_heads", "head_dim", "rope"}) {
    const Json& found = config.at("model").at(field);
    if (found == expected.at(field)) continue;
    differences += (differences.empty() ? "" : "; ") + std::string(field) + " " + found.dump() + ", expected " +
                   expected.at(field).dump();
  }
  if (!differences.empty())
    throw Error(ErrorCode::kConflict, path.string() + ": model", "config for another model: found " + differences);
}

}  // namespace kvs
