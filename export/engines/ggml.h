// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "export/engines/engine.h"

namespace kvs::inline engines {

// ggml's types of rows, by the names that both llama.cpp and ik_llama.cpp take.

/// The types that `compare --engine` tries.
inline constexpr std::array<std::string_view, 10> kGgmlPairs{
    "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "q8_0/q4_0", "q8_0/q5_1", "q5_1/q4_0", "q8_0/iq4_nl"};

/// Returns the name of a type as a flag takes it: 16 bits are f16 by default.
std::string ggml_flag(const std::string& type);
/// Returns true if some layer has keys or values in fewer than 16 bits.
bool has_quantised_rows(const EngineCache& cache);
/// Returns why the cache is not the full cache in ggml's types and channel order; else empty.
std::string ggml_obstacle(const EngineCache& cache);

}  // namespace kvs::inline engines
