// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "io/json.h"

namespace kvs::inline calibrate {

/// Runs the checks of the reader of an elitekv config that schema and lists do not cover. @throws Error kInput
void check_elite_config(const Json& config, const std::string& where);
/// Checks the factors that a config names: shapes and values. @throws Error like TensorReader
void check_elite_factors(const Json& config, const std::filesystem::path& path);

}  // namespace kvs::inline calibrate
