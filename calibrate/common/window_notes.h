#pragma once

#include <string>
#include <vector>

#include "model/config.h"

namespace kvs {

/// What sliding windows change for a method that measures losses; empty where the model has none.
std::vector<std::string> window_notes(const ModelConfig& model);

}  // namespace kvs
