// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns notes on sliding windows for a method that measures losses; empty if the model has no windows.
std::vector<std::string> window_notes(const ModelConfig& model);

}  // namespace kvs::inline calibrate
