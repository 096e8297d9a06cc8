// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "model/config.h"
#include "options/options.h"

namespace kvs::inline calibrate {

/// Returns the layers that --layers names, ascending; all: those with a KV cache.
/// @throws Error kUsage like Options::indices(); kUnsupported for a layer without a KV cache
std::vector<std::size_t> chosen_layers(const Options& options, const ModelConfig& model);

}  // namespace kvs::inline calibrate
