// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/registry.h"
#include "model/cache_shape.h"

namespace kvs::test {

/// Returns a method's cache for a model, as `--method NAME --set SETTINGS` makes it.
inline Cache cache_of(const ModelConfig& config, const std::string& name,
                      const std::vector<std::string>& settings = {}) {
  Parameters parameters({{parse_settings(settings, "settings"), "", ErrorCode::kUsage}}, config.layers());
  return make_cache(*find_method(name), parameters, cache_shape(config));
}

}  // namespace kvs::test
