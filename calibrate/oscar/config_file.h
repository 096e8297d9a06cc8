// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/oscar/rotations.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// Writes a config with its rotations in a file next to it (.safetensors). @param parameters  all of them
/// @param quality  measured by the caller, or empty
/// @return the config;  @throws like StagedOutput::commit with `force`
Json write_oscar_config(const std::vector<OscarRotations>& layers, const ModelSource& source, Json parameters,
                        const Provenance& provenance, const std::filesystem::path& file, bool force,
                        Json quality = Json::object());

}  // namespace kvs::inline calibrate
