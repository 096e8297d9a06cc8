// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "calibrate/config/config.h"
#include "calibrate/transform/calibration.h"

namespace kvs::inline calibrate {

/// Writes a calibration as a config, with its tensors in a file next to it (.safetensors). @return the config
/// @throws like StagedOutput::commit with `force`
Json write_transform_config(const TransformCalibration& found, const ModelSource& source, const Provenance& provenance,
                            const std::filesystem::path& file, bool force, Json quality = Json::object());

}  // namespace kvs::inline calibrate
