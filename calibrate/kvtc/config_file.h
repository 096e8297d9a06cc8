// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "calibrate/config/config.h"
#include "calibrate/kvtc/config.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// Writes the config and, next to it, its tensors (.safetensors).
/// @param quality  measured by the caller, or empty
/// @return the config;  @throws like StagedOutput::commit with `force`
Json write_kvtc_config(const KvtcConfig& found, const ModelSource& source, const Provenance& provenance,
                       const std::filesystem::path& file, bool force, Json quality = Json::object());

/// Describes a calibration: groups, bytes, and what all sequences share.
std::string kvtc_summary(const KvtcConfig& found);

}  // namespace kvs::inline calibrate
