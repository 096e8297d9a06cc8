// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/engine_types.h"

#include "calibrate/registry.h"
#include "core/error.h"
#include "model/cache_shape.h"

namespace kvs::inline exporting {
namespace {

/// Returns a parameter that must be equal in all layers.
std::string one_word(const ExportJob& job, const Json& parameters, const std::string& name, const std::string& engine) {
  const Json& value = parameters.at(name);
  if (value.is_array())
    refuse_parameter(job, name, "found another for each layer, expected one: " + engine + " has one for all of them");
  return value.get<std::string>();
}

EngineCache engine_cache(const ExportJob& job) {
  return {{.method = &kFullMethod, .parameters = {{resolved_parameters(job), "", ErrorCode::kInput}}},
          job.model.config()};
}

}  // namespace

void refuse_for_engine(const ExportJob& job, const Engine& engine) {
  if (const std::string obstacle = engine.obstacle(engine_cache(job)); !obstacle.empty())
    throw Error(ErrorCode::kUnsupported, job.config_path.string() + ": /parameters",
                obstacle + ", in " + std::string(engine.name));
}

EngineUse use_in_engine(const ExportJob& job, const Engine& engine) {
  refuse_for_engine(job, engine);
  return use_in(engine, engine_cache(job));
}

void refuse_parameter(const ExportJob& job, const std::string& name, const std::string& problem) {
  throw Error(ErrorCode::kUnsupported, job.config_path.string() + ": /parameters/" + name, problem);
}

Parameters parameter_reader(const ExportJob& job) {
  return {{{job.config.at("parameters"), job.config_path.string() + ": /parameters/", ErrorCode::kInput}},
          cache_shape(job.model.config())};
}

Json resolved_parameters(const ExportJob& job) {
  const ModelConfig& model = job.model.config();
  Parameters reader = parameter_reader(job);
  const Method* const method = find_method(job.config.at("method").get<std::string>());
  if (method->make == nullptr)
    throw Error(ErrorCode::kUnsupported, job.config_path.string() + ": /method",
                "found " + job.config.at("method").get<std::string>() + ", expected full or kivi");
  (void)make_cache(*method, reader, cache_shape(model));
  return reader.resolved();
}

EngineTypes one_kv_type(const ExportJob& job, const std::string& engine) {
  const Json parameters = resolved_parameters(job);
  if (parameters.at("layers").size() != job.model.config().cached_layers().size())
    refuse_parameter(job, "layers", "found some layers, expected all: " + engine + " has one cache type for all");
  if (!parameters.at("type_skip_layers").empty())
    refuse_parameter(job, "type_skip_layers",
                     "found " + parameters.at("type_skip_layers").dump() + ", expected none: " + engine +
                         " has one cache type for all layers");
  const auto word = [&](const std::string& name) { return one_word(job, parameters, name, engine); };
  const std::string both = word("type"), k = word("type_k"), v = word("type_v");
  return {k == "type" ? both : k, v == "type" ? both : v, word("rotate") == "on", word("layout") == "engine"};
}

}  // namespace kvs::inline exporting
