// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/config.h"

namespace kvs::inline calibrate {

// Notes on methods for models with attention sinks; empty for other models.

/// For a method that keeps the first tokens as sinks.
std::vector<std::string> first_token_notes(const ModelConfig& model);
/// For a method that chooses tokens by their attention.
std::vector<std::string> mass_notes(const ModelConfig& model);

}  // namespace kvs::inline calibrate
