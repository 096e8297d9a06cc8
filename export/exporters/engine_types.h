#pragma once

#include <string>

#include "caches/parameters.h"
#include "export/exporter.h"

namespace kvs {

/// The parameters of a config, to be asked for by name.
Parameters parameter_reader(const ExportJob& job);

/// The parameters of a config, each standard included. @throws Error kInput.
Json resolved_parameters(const ExportJob& job);

/// How a full cache holds its rows: what engines can do themselves.
struct EngineTypes {
  std::string k, v;  // kinds of `type`
  bool rotate, engine_layout;
};

/// The store of a config of the method `full`, for an engine that has one for all layers.
/// @param engine  for messages
/// @throws Error kUnsupported if it differs between layers, or leaves some out.
EngineTypes one_kv_type(const ExportJob& job, const std::string& engine);

/// @throws Error kUnsupported naming the config's parameter
[[noreturn]] void refuse_parameter(const ExportJob& job, const std::string& name, const std::string& problem);

}  // namespace kvs
