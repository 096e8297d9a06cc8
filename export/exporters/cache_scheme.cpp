// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/cache_scheme.h"

#include "core/error.h"
#include "export/exporters/hf_folder.h"
#include "io/file.h"
#include "io/python_json.h"

namespace kvs::inline exporting {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfigFile = "config.json", *kModelOptFile = "hf_quant_config.json";

Json read_object(const fs::path& path) {
  Json object = parse_python_json(read_text_file(path, kMaxConfigBytes), path.string());
  if (!object.is_object())
    throw Error(ErrorCode::kInput, path.string(), "found " + describe_json(object) + ", expected an object");
  return object;
}

Json scheme_of(bool by_head) {
  return {{"num_bits", 8},
          {"type", "float"},
          {"strategy", by_head ? "attn_head" : "tensor"},
          {"symmetric", true},
          {"dynamic", false}};
}

Json scheme_of_plain_weights(const Json& scheme) {
  return {{"quant_method", "compressed-tensors"}, {"format", "dense"},       {"quantization_status", "frozen"},
          {"config_groups", Json::object()},      {"ignore", Json::array()}, {"kv_cache_scheme", scheme}};
}

/// @throws Error kUnsupported if `object` has a scheme of the cache
void expect_no_scheme(const Json& object, const std::string& where) {
  for (const char* name : {"kv_cache_scheme", "kv_cache_quant_algo"})
    if (object.contains(name) && !object.at(name).is_null())
      throw Error(ErrorCode::kUnsupported, where + '/' + name,
                  "found " + describe_json(object.at(name)) + ", expected none: a checkpoint has one scheme");
}

/// Returns quantization_config with the scheme of the cache.
Json joined(Json own, const CacheScheme& found, bool by_head, const std::string& where) {
  const JsonCursor cursor(own, where);
  (void)cursor.keys();  // an object
  const std::string method = cursor.at("quant_method").string();
  if (method != "compressed-tensors" && method != "fp8" && method != "modelopt")
    throw Error(
        ErrorCode::kUnsupported, where + "/quant_method",
        "found " + printable(method, 80) +
            ", expected none, compressed-tensors, fp8 or modelopt: vLLM takes no scales of a cache with others");
  if (by_head && method != "compressed-tensors")
    throw Error(ErrorCode::kUnsupported, where + "/quant_method",
                "found " + method + " and scales by head, expected one scale a layer, which is all that vLLM takes");
  const bool nested = own.contains("quantization") && own.at("quantization").is_object();  // older ModelOpt
  Json& object = nested ? own["quantization"] : own;
  expect_no_scheme(object, nested ? where + "/quantization" : where);
  if (nested)
    object["kv_cache_quant_algo"] = "FP8";
  else
    object["kv_cache_scheme"] = found.scheme;
  return own;
}

/// Adds hf_quant_config.json, which ModelOpt writes in addition to or instead of quantization_config.
void add_modelopt_file(const fs::path& path, bool by_head, CacheScheme& found) {
  Json object = read_object(path);
  (void)JsonCursor(object, path.string()).at("quantization").keys();
  if (by_head)
    throw Error(ErrorCode::kUnsupported, path.string(),
                "found a checkpoint of ModelOpt and scales by head, expected one scale a layer");
  expect_no_scheme(object.at("quantization"), path.string() + ": /quantization");
  object["quantization"]["kv_cache_quant_algo"] = "FP8";
  found.files[kModelOptFile] = std::move(object);
}

}  // namespace

CacheScheme with_fp8_cache(const fs::path& folder, bool by_head) {
  CacheScheme found{.files = {}, .scheme = scheme_of(by_head)};
  Json config = read_object(folder / kConfigFile);
  const fs::path modelopt = folder / kModelOptFile;
  const bool has_file = fs::exists(modelopt);
  if (has_file) add_modelopt_file(modelopt, by_head, found);
  const std::string where = (folder / kConfigFile).string() + ": /quantization_config";
  if (config.contains("quantization_config") && !config.at("quantization_config").is_null()) {
    config["quantization_config"] = joined(config.at("quantization_config"), found, by_head, where);
    found.needs_flag = config.at("quantization_config").at("quant_method") == "fp8";
  } else if (!has_file) {
    config["quantization_config"] = scheme_of_plain_weights(found.scheme);
  } else {
    return found;
  }
  found.files[kConfigFile] = std::move(config);
  return found;
}

CacheScheme with_layer_map(const fs::path& folder, const Json& map, bool alike) {
  constexpr const char* kExpected =
      ", expected weights of 16 bits, for which alone Model-Optimizer states the cache by layer";
  Json config = read_object(folder / kConfigFile);
  if (config.contains("quantization_config") && !config.at("quantization_config").is_null())
    throw Error(ErrorCode::kUnsupported, (folder / kConfigFile).string() + ": /quantization_config",
                "found " + describe_json(config.at("quantization_config")) + kExpected);
  if (fs::exists(folder / kModelOptFile))
    throw Error(ErrorCode::kUnsupported, (folder / kModelOptFile).string(),
                std::string("found a checkpoint of ModelOpt") + kExpected);
  Json scheme{{"quant_method", "modelopt"},
              {"ignore", Json::array()},
              {"kv_cache_schema_version", 1},
              {"kv_cache_quantized_layers", map}};
  if (!alike)
    scheme["kv_cache_quant_algo"] = "MIXED_PRECISION";
  else if (map.front().at("quant_algo") == "FP8")
    scheme["kv_cache_scheme"] = {{"dynamic", false}, {"num_bits", 8}, {"type", "float"}};
  else
    scheme["kv_cache_scheme"] = map.front().at("quant_algo");
  config["quantization_config"] = scheme;
  return {.files = {{kConfigFile, std::move(config)}}, .scheme = std::move(scheme)};
}

}  // namespace kvs::inline exporting
