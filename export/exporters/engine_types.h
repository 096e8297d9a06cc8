// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "caches/parameters.h"
#include "export/engines/engine.h"
#include "export/exporter.h"

namespace kvs::inline exporting {

/// Returns a reader of a config's parameters by name.
Parameters parameter_reader(const ExportJob& job);

/// Returns the parameters of a config, including defaults. @throws Error kInput.
Json resolved_parameters(const ExportJob& job);

/// How a full cache stores its rows, as far as engines support it.
struct EngineTypes {
  std::string k, v;  // values of `type`
  bool rotate, engine_layout;
};

/// Returns the storage types of a config of the method `full`, for an engine with one type for all layers.
/// @param engine  its name, for messages
/// @throws Error kUnsupported if the types differ between layers, or if the config leaves layers out
EngineTypes one_kv_type(const ExportJob& job, const std::string& engine);

/// Refuses a config of the method `full` that an engine does not execute.
/// @throws Error kUnsupported with Engine::obstacle
void refuse_for_engine(const ExportJob& job, const Engine& engine);
/// Returns how the engine is told the config. @throws Error like refuse_for_engine()
EngineUse use_in_engine(const ExportJob& job, const Engine& engine);

/// @throws Error kUnsupported with the name of the config's parameter
[[noreturn]] void refuse_parameter(const ExportJob& job, const std::string& name, const std::string& problem);

}  // namespace kvs::inline exporting
