// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "calibrate/config/config.h"
#include "io/output_set.h"
#include "io/output_tensor.h"

namespace kvs::inline calibrate {

/// Writes the tensors of a config to the file next to it (.safetensors), which takes its place with `outputs`.
/// @param format  stated in the file's metadata
/// @return the config's record of the file;  @throws Error kEnvironment
ConfigFile stage_tensors(const std::filesystem::path& config, std::span<const OutputTensor> tensors,
                         const std::string& format, OutputSet& outputs);

}  // namespace kvs::inline calibrate
