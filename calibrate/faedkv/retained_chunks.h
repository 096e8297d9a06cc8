// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "analyzers/retention.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// Makes `plan` keep whole chunks of the grid of a faedkv config, the best by the config's Δ. The config also
/// determines which layers and tokens are filtered.
/// @throws Error kInput for a config without an ablation; kUnsupported if layers differ; kUsage if there are fewer
///         filtered tokens than chunks; like check_config_model
void retain_chunks_of(const std::filesystem::path& path, const ModelSource& source, RetentionPlan& plan);

}  // namespace kvs::inline calibrate
