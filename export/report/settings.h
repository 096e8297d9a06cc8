#pragma once

#include <optional>
#include <string>

#include "io/json.h"

namespace kvs {

/// What a cache is called: "lagkv", "lagkv + q8_0", and of the full cache in a storage type "q8_0".
std::string cache_label(const std::string& method, const std::optional<Json>& parameters);
/// A label in a sentence: "LagKV + q8_0".
std::string spoken(const std::string& label);
/// "lag 64 · ratio 0.25"; long lists by their length. Without what cache_label() says already.
std::string settings_text(const Json& settings);

}  // namespace kvs
