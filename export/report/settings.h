// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "io/json.h"

namespace kvs::inline report {

/// Returns the name of a cache: "lagkv", "lagkv + q8_0", or "q8_0" for the full cache with a storage type.
std::string cache_label(const std::string& method, const std::optional<Json>& parameters);
/// Returns a label for use in a sentence: "LagKV + q8_0".
std::string spoken(const std::string& label);
/// Returns settings in words: "lag 64 · ratio 0.25". Long lists are given by their length. Settings that cache_label()
/// contains are left out.
std::string settings_text(const Json& settings);

}  // namespace kvs::inline report
