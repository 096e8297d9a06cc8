// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/triattention/query_statistics.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// Writes a config with its statistics in a file next to it (.safetensors). @param parameters  all of them
/// @return the config;  @throws like StagedOutput::commit with `force`
Json write_triattention_config(const std::vector<QueryStatistics>& layers, const ModelSource& source, Json parameters,
                               const Provenance& provenance, const std::filesystem::path& file, bool force);

/// Describes how concentrated the queries are (QueryStatistics::resultant_length), on average and at least.
std::string triattention_summary(const std::vector<QueryStatistics>& layers);

}  // namespace kvs::inline calibrate
